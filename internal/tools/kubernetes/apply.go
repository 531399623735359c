// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// fieldManager is who changes fields, as the API server keeps it.
const fieldManager = "parley"

// apply creates and changes objects.
type apply struct{ *common }

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

func (apply) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1alpha1.BuiltInK8sApply),
		Description: "Creates or changes objects of the Kubernetes cluster by server-side apply. Give of an object that " +
			"exists only the fields that you want to be so, and all that an earlier k8s_apply of it gave: fields that you " +
			"leave out now are removed. A person may be asked first, and sees what would change. Secrets cannot be applied.",
		InputSchema: arguments.Object(map[string]any{
			"manifest":  arguments.Text(1, maxManifest, "The objects as YAML, with a line of --- between them."),
			"namespace": arguments.Text(1, maxName, "The namespace of objects that name none. Default: that of this chat."),
			"force":     arguments.Boolean("Whether to take over fields that others manage. Try without it first."),
		}, "manifest"),
		Traits: changing,
		Reference: tools.Reference{Offered: offeredChanges, Result: applyResult{}, Errors: append(commonErrors,
			"The manifest cannot be read, has no object, a list, a Secret, a ToolApproval or an object without a name.",
			"The API server refuses one of the objects, or finds fields that it does not know: nothing was done.",
			"A field has another manager and `force` is false: nothing was done.",
			"A person denied it, or an object changed after they had seen what would change: nothing was done.",
			"An object is refused although it was not before: the error says what was done of the others."),
			Limits: []string{
				fmt.Sprintf("At most %d objects, and %d KiB of changes if a person has to approve them.", maxObjects,
					v1alpha1.MaxProposal>>10),
				"Objects are changed one after the other, each only if it still is what a person has seen; its status does not " +
					"count.",
				"A call that is made again after a crash does nothing twice.",
			}},
	}
}

// Run finds out what would change, has people asked about it if that is required, and does it once it may.
func (t apply) Run(ctx context.Context, call tools.Call) (string, error) {
	var given applyArguments
	a, err := t.begin(ctx, call, t.Definition().InputSchema, &given)
	if err != nil {
		return "", err
	}
	wanted, err := a.manifests(ctx, given.Manifest, given.Namespace)
	if err != nil {
		return "", err
	}
	all, err := a.proposals(ctx, wanted, given.Force)
	if err != nil {
		return "", err
	}
	if !left(all) || refused(call.Answer) {
		err = a.review(call.Name, all)
	}
	for i := 0; i < len(all) && err == nil; i++ {
		if all[i], err = a.carryOut(ctx, wanted[i], all[i], given.Force); err != nil {
			err = partly(all[:i], wanted[i].target, err)
		}
	}
	if err != nil {
		return "", err
	}
	return applied(call, all)
}

// left reports whether all proposals leave their objects as they are.
func left(all []proposal) bool {
	return !slices.ContainsFunc(all, func(p proposal) bool { return !p.done })
}

// refused reports whether people do not let it be done.
func refused(answer *tools.Answer) bool { return answer != nil && !answer.Given }

// proposals are what applying manifests would do.
func (a *access) proposals(ctx context.Context, wanted []manifest, force bool) (all []proposal, err error) {
	all = make([]proposal, len(wanted))
	for i := range wanted {
		if all[i], err = a.proposed(ctx, wanted[i], force); err != nil {
			return nil, onTarget(wanted[i].target, err)
		}
	}
	return all, nil
}

// onTarget says which object an error is about.
func onTarget(t target, err error) error { return fmt.Errorf("%s: %w", t.title(), err) }

// partly says what was done before an error.
func partly(done []proposal, t target, err error) error {
	var titles []string
	for i := range done {
		if !done[i].done {
			titles = append(titles, done[i].title())
		}
	}
	if len(titles) == 0 {
		return onTarget(t, err)
	}
	return fmt.Errorf("%w; before that, these were applied: %s", onTarget(t, err), strings.Join(titles, ", "))
}

// applied is the result of proposals that were carried out.
func applied(call tools.Call, all []proposal) (string, error) {
	return tools.Fit(call.Chat, tools.MaxResultBytes, func(most int) any {
		var r applyResult
		for i := range all {
			o := appliedObject{Object: all[i].title(), Outcome: "changed", Diff: tools.Truncate(all[i].told, most/len(all))}
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

// proposed is what applying a manifest would do, as the API server says.
func (a *access) proposed(ctx context.Context, m manifest, force bool) (p proposal, err error) {
	for range maxTries {
		if p, err = a.dryRun(ctx, m, force); !changedMeanwhile(err) {
			break
		}
	}
	return p, err
}

// changedMeanwhile reports whether a write was refused because of another one at the same moment.
func changedMeanwhile(err error) bool {
	return apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) && len(conflictsOf(err)) == 0
}

func (a *access) dryRun(ctx context.Context, m manifest, force bool) (p proposal, err error) {
	p = proposal{target: m.target}
	if p.live, err = a.whole(ctx, m.kind, m.namespace, m.name); apierrors.IsNotFound(err) {
		p.live, err = nil, nil
	}
	if err != nil {
		return p, err
	}
	p.what = "change " + p.title()
	if p.live == nil {
		p.what = "create " + p.title()
	}
	after, err := a.write(ctx, m, &p, true)
	if conflicts := conflictsOf(err); len(conflicts) > 0 {
		after, err = a.takeOver(ctx, m, &p, slices.DeleteFunc(conflicts, ours), force, err)
	}
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

// takeOver asks once more what applying the manifest would do, with fields that others manage if force lets it. The
// error is that of the conflict.
func (a *access) takeOver(ctx context.Context, m manifest, p *proposal, foreign []string, force bool, conflict error) (
	*unstructured.Unstructured, error) {
	if len(foreign) > 0 && !force {
		return nil, fmt.Errorf("%w. Nothing was done. If these fields are to be changed all the same, call again with force",
			conflict)
	}
	if p.force = true; len(foreign) > 0 {
		p.what += ", and take fields over from others: " + printable.Line(strings.Join(foreign, "; "))
	}
	return a.write(ctx, m, p, true)
}

// ours reports whether a conflict is with fields that Parley has set when it created the object.
func ours(conflict string) bool {
	return strings.HasPrefix(conflict, `conflict with "`+fieldManager+`"`)
}

// conflictsOf are those with others who manage fields; nil if the error is another one.
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

// maxTries is how often an object is changed that others change at the same moment.
const maxTries = 5

// carryOut does what is proposed. An object that has changed in the meantime is looked at once more: if the very same
// would be done to it, because only its status is another one, that is done.
func (a *access) carryOut(ctx context.Context, m manifest, p proposal, force bool) (proposal, error) {
	sum := p.sum(a.account)
	for range maxTries {
		if p.done {
			return p, nil
		}
		_, err := a.write(ctx, m, &p, false)
		if !changedMeanwhile(err) {
			return p, err
		}
		if p, err = a.proposed(ctx, m, force); err != nil {
			return p, err
		}
		if !p.done && p.sum(a.account) != sum {
			break
		}
	}
	return p, errors.New("the object changed at the same moment, so that this was not done: look at it, and call again " +
		"if it is still needed")
}

// write applies a manifest to the very object that the proposal is about, or only asks what that would do. An object
// that is new is created: to apply it would change one that somebody else has created by now.
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
		o.SetResourceVersion(p.version())
		query.Set("force", strconv.FormatBool(p.force))
		r.Method, r.Path, r.Type = http.MethodPatch, m.kind.Path(m.namespace, m.name), "application/apply-patch+yaml"
	}
	body, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("writing the manifest: %w", err)
	}
	r.Body = body
	raw, err := a.do(ctx, r)
	if err != nil {
		return nil, err
	}
	return decodeWhole(raw)
}
