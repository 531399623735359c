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
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"parley.dev/parley/api/v1alpha1"
)

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
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return errors.New("an object has no apiVersion or no kind")
	case o.IsList() || gvk.Group == "" && strings.HasSuffix(gvk.Kind, "List"):
		return fmt.Errorf("%s is a list: give its objects one by one, with a line of --- between them", gvk.Kind)
	case o.GetName() == "":
		return fmt.Errorf("a %s has no metadata.name: generateName is not enough", gvk.Kind)
	case gvk.Group == "" && gvk.Kind == "Secret":
		return errors.New("a Secret is not applied, because its values would stand in this conversation: ask a person to")
	case gvk.Group == v1alpha1.GroupVersion.Group && gvk.Kind == "ToolApproval":
		return errors.New("people decide about calls, not models")
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
