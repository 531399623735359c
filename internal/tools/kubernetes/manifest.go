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
	"parley.dev/parley/internal/kube/kubeapi"
)

const (
	// maxManifest is the most characters of what is applied, maxObjects the most objects in it.
	maxManifest, maxObjects = 64 << 10, 8
	// readAhead is how much is looked at to tell YAML from JSON.
	readAhead = 4096
)

// target is an object to be changed.
type target struct {
	kind            *kubeapi.Kind
	namespace, name string
}

// title is how people read of it.
func (t target) title() string {
	if t.namespace == "" {
		return t.kind.Title() + " " + t.name
	}
	return t.kind.Title() + " " + t.name + " in namespace " + t.namespace
}

// manifest is an object as it is to be.
type manifest struct {
	target
	object *unstructured.Unstructured
}

// manifests are the objects of a text.
func (a *access) manifests(ctx context.Context, text, namespace string) ([]manifest, error) {
	objects, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("the call was not made: %w", err)
	}
	all := make([]manifest, len(objects))
	for i, object := range objects {
		kind, err := a.client.Of(ctx, a.account, object.GroupVersionKind())
		if err != nil {
			return nil, a.told(ctx, err)
		}
		if object.GetNamespace() != "" && !kind.Namespaced {
			return nil, fmt.Errorf("the call was not made: %s is in no namespace: leave metadata.namespace out", kind.Title())
		}
		into := a.within(kind, cmp.Or(object.GetNamespace(), namespace))
		all[i] = manifest{target{kind, into, object.GetName()}, object}
		object.SetNamespace(all[i].namespace)
	}
	return all, nil
}

// parse reads the objects of a text. The error says what is wrong with it.
func parse(text string) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), readAhead)
	for {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("the manifest is neither YAML nor JSON: %w", err)
		}
		o := &unstructured.Unstructured{}
		if len(raw) == 0 || string(raw) == "null" {
			continue // A document without content.
		}
		if err := utiljson.Unmarshal(raw, &o.Object); err != nil {
			return nil, errors.New("the manifest has a document that is no object")
		}
		if err := check(o); err != nil {
			return nil, err
		}
		withoutBookkeeping(o)
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

// check is why an object cannot be applied; nil if it can.
func check(o *unstructured.Unstructured) error {
	gvk := o.GroupVersionKind()
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return errors.New("an object has no apiVersion or no kind")
	case isList(o):
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

// isList reports whether the object is one of several others.
func isList(o *unstructured.Unstructured) bool {
	return o.IsList() || o.GroupVersionKind().Group == "" && strings.HasSuffix(o.GetKind(), "List")
}

// bookkeeping is what the API server writes itself.
var bookkeeping = []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"}

func withoutBookkeeping(o *unstructured.Unstructured) {
	for _, field := range bookkeeping {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
}
