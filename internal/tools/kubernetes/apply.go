// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// fieldManager is the manager of the fields that Parley applies.
const fieldManager = "parley"

type applyArguments struct {
	Manifest  string `json:"manifest"`
	Namespace string `json:"namespace"`
	Force     bool   `json:"force"`
}

type appliedObject struct {
	Object  string `json:"object" doc:"Its kind, name and namespace."`
	Outcome string `json:"outcome" doc:"\"created\", \"changed\", or \"unchanged\": it was so already."`
	Diff    string `json:"diff,omitempty" doc:"What has changed, as a unified diff of YAML."`
}

type applyResult struct {
	Objects []appliedObject `json:"objects" doc:"The objects, in the order of the manifest."`
}

var applyDefinition = tools.Definition{
	Name: string(v1beta1.BuiltInK8sApply),
	Description: "Creates or changes objects of the Kubernetes cluster by server-side apply. Give of an object that " +
		"exists only the fields that you want to be so, and all that an earlier k8s_apply of it gave: fields that you " +
		"leave out now are removed. A person may be asked first, and sees what would change. Secrets cannot be applied.",
	InputSchema: arguments.Object(map[string]any{
		"manifest":  arguments.Text(1, maxManifest, "The objects as YAML, with a line of --- between them."),
		"namespace": arguments.Text(1, maxName, "The namespace of objects that name none. Default: that of this chat."),
		"force":     arguments.Boolean("Whether to take over fields that others manage. Try without it first."),
	}, "manifest"),
	Traits: changing,
	Reference: tools.Reference{Offered: offeredChanges, Result: applyResult{}, Errors: []string{
		"The manifest cannot be read, has no object, a list, a Secret, a ToolApproval or an object without a name.",
		"The API server refuses one of the objects, or finds fields that it does not know: nothing was done.",
		"A field has another manager and `force` is false: nothing was done.",
		"A person denied it, or an object changed after they had seen what would change: nothing was done.",
		"An object is refused although it was not before: the error says what was done of the others."},
		Limits: []string{
			fmt.Sprintf("At most %d objects, and %d KiB of changes if a person has to approve them.", maxObjects,
				v1beta1.MaxProposal>>10),
			"Objects are changed one after the other, each only if it still is what a person has seen; its status does not " +
				"count.",
			"A call that is made again after a crash does nothing twice.",
		}},
}

// apply makes dry runs, asks people for approval if that is required, and makes the changes after it.
func apply(ctx context.Context, a *access, args applyArguments) (string, error) {
	manifests, err := a.manifests(ctx, args)
	if err != nil {
		return "", err
	}
	all := make([]proposal, len(manifests))
	for i, m := range manifests {
		if all[i], err = a.propose(ctx, m); err != nil {
			return "", m.wrap(err)
		}
	}
	if err := a.review(all); err != nil {
		return "", err
	}
	var applied []string
	for i, m := range manifests {
		if all[i], err = a.perform(ctx, m, all[i]); err != nil {
			err = m.wrap(err)
			if len(applied) > 0 {
				err = fmt.Errorf("%w; before that, these were applied: %s", err, strings.Join(applied, ", "))
			}
			return "", err
		}
		if !all[i].done {
			applied = append(applied, m.title())
		}
	}
	return encodeApplied(a, all)
}

// encodeApplied returns what became of the objects, with as much of their diffs as fits.
func encodeApplied(a *access, all []proposal) (string, error) {
	return tools.Fit(a.call.Chat, tools.MaxResultBytes, func(most int) any {
		var r applyResult
		for i := range all {
			o := appliedObject{Object: all[i].title(), Outcome: "changed",
				Diff: tools.Truncate(all[i].redactedDiff, most/len(all))}
			switch {
			case all[i].done:
				o.Outcome = "unchanged"
			case all[i].live == nil:
				o.Outcome = "created"
			}
			r.Objects = append(r.Objects, o)
		}
		return r
	})
}

// dryRun implements change.
func (m manifest) dryRun(ctx context.Context, a *access) (p proposal, err error) {
	p = proposal{target: m.target}
	if p.live, err = a.read(ctx, m.target); apierrors.IsNotFound(err) {
		p.live, err = nil, nil
	}
	if err != nil {
		return p, err
	}
	p.what = "change " + p.title()
	if p.live == nil {
		p.what = "create " + p.title()
	}
	after, err := m.resolveConflicts(ctx, a, &p)
	if err != nil {
		return p, err
	}
	_, status := m.object.Object["status"]
	err = p.compare(after, status)
	if p.done = p.diff == "" && p.live != nil; p.done {
		p.what = "leave " + p.title() + " as it is"
	}
	return p, err
}

// resolveConflicts makes the dry run, and makes it again by force where fields have other managers.
func (m manifest) resolveConflicts(ctx context.Context, a *access, p *proposal) (*unstructured.Unstructured, error) {
	after, err := a.write(ctx, m, p, true)
	conflicts := conflictsOf(err)
	if len(conflicts) == 0 {
		return after, err
	}
	foreign := slices.DeleteFunc(conflicts, func(c string) bool {
		return strings.HasPrefix(c, `conflict with "`+fieldManager+`"`) // Parley created the object with the field.
	})
	if len(foreign) > 0 && !m.force {
		return nil, fmt.Errorf("%w. Nothing was done. If these fields are to be changed all the same, call again with force",
			err)
	}
	if p.force = true; len(foreign) > 0 {
		p.what += ", and take fields over from others: " + printable.Line(strings.Join(foreign, "; "))
	}
	return a.write(ctx, m, p, true)
}

// perform implements change.
func (m manifest) perform(ctx context.Context, a *access, p *proposal) error {
	_, err := a.write(ctx, m, p, false)
	return err
}

// conflictsOf are the conflicts with other managers of fields; nil if the error is another one.
func conflictsOf(err error) (all []string) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return nil
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			all = append(all, cause.Message+": "+cause.Field)
		}
	}
	return all
}

// write applies a manifest to the version of the object that the proposal is about, or makes a dry run. It creates a
// new object: an apply would change one that someone else has created meanwhile.
func (a *access) write(ctx context.Context, m manifest, p *proposal, dry bool) (*unstructured.Unstructured, error) {
	o := m.object.DeepCopy()
	query := url.Values{"fieldManager": {fieldManager}, "fieldValidation": {"Strict"}}
	if dry {
		query.Set("dryRun", "All")
	}
	r := kubeapi.Request{Method: http.MethodPost, Path: m.kind.Path(m.namespace, ""), Query: query,
		Type: "application/json"}
	if p.live != nil {
		o.SetUID(p.live.GetUID())
		o.SetResourceVersion(p.live.GetResourceVersion())
		query.Set("force", strconv.FormatBool(p.force))
		r.Method, r.Path, r.Type = http.MethodPatch, m.kind.Path(m.namespace, m.name), "application/apply-patch+yaml"
	}
	var err error
	if r.Body, err = json.Marshal(o.Object); err != nil {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}
	raw, err := a.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

const (
	// maxManifest bounds the characters of a manifest, maxObjects its objects.
	maxManifest, maxObjects = 64 << 10, 8
	// formatPrefix is how many bytes are read to tell YAML from JSON.
	formatPrefix = 4096
)

// manifest creates or changes an object.
type manifest struct {
	target
	object *unstructured.Unstructured
	// force takes over fields of others.
	force bool
}

// manifests are the objects of the arguments.
func (a *access) manifests(ctx context.Context, args applyArguments) ([]manifest, error) {
	objects, err := parseManifest(args.Manifest)
	if err != nil {
		return nil, fmt.Errorf("the call was not made: %w", err)
	}
	all := make([]manifest, len(objects))
	for i, object := range objects {
		kind, err := a.client.Of(ctx, a.account, object.GroupVersionKind())
		if err != nil {
			return nil, a.describeError(ctx, err)
		}
		if object.GetNamespace() != "" && !kind.Namespaced {
			return nil, fmt.Errorf("the call was not made: %s is in no namespace: leave metadata.namespace out", kind.Title())
		}
		object.SetNamespace(a.namespaceOf(kind, cmp.Or(object.GetNamespace(), args.Namespace)))
		all[i] = manifest{target{kind, object.GetNamespace(), object.GetName()}, object, args.Force}
	}
	return all, nil
}

// parseManifest decodes the objects of a manifest.
func parseManifest(text string) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), formatPrefix)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("the manifest is neither YAML nor JSON: %w", err)
		}
		if len(raw) == 0 || string(raw) == "null" {
			continue // A document without content.
		}
		o := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(raw, &o.Object); err != nil {
			return nil, errors.New("the manifest has a document that is no object")
		}
		if err := checkObject(o); err != nil {
			return nil, err
		}
		removeBookkeeping(o)
		objects = append(objects, o)
	}
	switch n := len(objects); {
	case n == 0:
		return nil, errors.New("the manifest has no object")
	case n > maxObjects:
		return nil, fmt.Errorf("the manifest has %d objects: apply at most %d at once", n, maxObjects)
	}
	return objects, nil
}

// checkObject returns an error if an object cannot be applied.
func checkObject(o *unstructured.Unstructured) error {
	gvk := o.GroupVersionKind()
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Secret"}:
		return errors.New("a Secret is not applied, because its values would stand in this conversation: ask a person to")
	case schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "ToolApproval"}:
		return errors.New("people decide about calls, not models")
	}
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return errors.New("an object has no apiVersion or no kind")
	case o.IsList() || gvk.Group == "" && strings.HasSuffix(gvk.Kind, "List"):
		return fmt.Errorf("%s is a list: give its objects one by one, with a line of --- between them", gvk.Kind)
	case o.GetName() == "":
		return fmt.Errorf("a %s has no metadata.name: generateName is not enough", gvk.Kind)
	}
	return nil
}

// bookkeeping are the fields that the API server writes.
var bookkeeping = []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"}

func removeBookkeeping(o *unstructured.Unstructured) {
	for _, field := range bookkeeping {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}
