// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
)

// Resource is an object in an answer. Its resource definition describes it.
type Resource[T any] struct{ object *T }

// MarshalJSON is the object as huma encodes it.
func (r Resource[T]) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(r.object)
	return out.Bytes(), err
}

// Schema is the kind of the object.
func (Resource[T]) Schema(huma.Registry) *huma.Schema {
	kind := reflect.TypeFor[T]().Name()
	return &huma.Schema{
		Type: huma.TypeObject, Description: "The " + kind + " as the API server has it, without metadata.managedFields.",
		AdditionalProperties: true,
		Extensions: map[string]any{"x-kubernetes-group-version-kind": map[string]string{
			"group": v1beta1.GroupVersion.Group, "version": v1beta1.GroupVersion.Version, "kind": kind}},
	}
}

// Answer is the answer of an operation on one object.
type Answer[T any] struct{ Body Resource[T] }

// answerWith returns an object with its kind, which a typed client omits.
func answerWith[T any](object *T, err error) (*Answer[T], error) {
	if err != nil {
		return nil, err
	}
	o := any(object).(interface {
		metav1.Object
		runtime.Object
	})
	o.SetManagedFields(nil)
	o.GetObjectKind().SetGroupVersionKind(v1beta1.GroupVersion.WithKind(reflect.TypeFor[T]().Name()))
	return &Answer[T]{Resource[T]{object}}, nil
}

// each converts the items of a list.
func each[T, V any](items []T, convert func(*T) V) []V {
	all := make([]V, 0, len(items))
	for i := range items {
		all = append(all, convert(&items[i]))
	}
	return all
}

// Fields are the fields of a resource, which the API server validates.
type Fields map[string]any

// Schema is any object.
func (Fields) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// into reads fields of a resource. It refuses unknown ones, which a typed object would lose.
func into(name string, given, out any) error {
	raw, err := json.Marshal(given)
	if err != nil {
		return badRequest("%s cannot be read: %v", name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(out); err != nil {
		return badRequest("%s cannot be read: %v", name, err)
	}
	return nil
}
