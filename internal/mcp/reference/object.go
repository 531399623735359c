// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// object is one of another project: nothing is certain of its fields.
type object struct{ *unstructured.Unstructured }

// text is the field; empty if it is not there, or is no text.
func (o object) text(path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...) // Another type is no text.
	return value
}

// number is the field; 0 if it is not there, or is no whole number.
func (o object) number(path ...string) int64 {
	value, _, _ := unstructured.NestedInt64(o.Object, path...) // Another type is no number.
	return value
}

// list are the objects of the field.
func (o object) list(path ...string) (all []object) {
	values, _, _ := unstructured.NestedSlice(o.Object, path...) // Another type is no list.
	for _, value := range values {
		if fields, ok := value.(map[string]any); ok {
			all = append(all, object{&unstructured.Unstructured{Object: fields}})
		}
	}
	return all
}

// outdated reports whether the object has changed since its controller wrote its status, as far as the status says.
func (o object) outdated() bool {
	observed := o.number("status", "observedGeneration")
	return observed > 0 && observed < o.GetGeneration()
}

// condition is ready once the condition is True.
func condition(name string) func(object) string {
	return func(o object) string {
		for _, c := range o.list("status", "conditions") {
			if c.text("type") == name {
				if status := c.text("status"); status != "True" {
					return fmt.Sprintf("its condition %s is %s", name, shown(status))
				}
				return ""
			}
		}
		return "it has no condition " + name + " yet"
	}
}

// verified is ready once the server has answered, which each of the versions says in its own words.
func verified(o object) string {
	if o.GroupVersionKind().Version == "v1alpha1" {
		return condition("Ready")(o)
	}
	return condition("Verified")(o)
}

// phase is ready in one of the phases.
func phase(ready ...string) func(object) string {
	return func(o object) string {
		switch now := o.text("status", "phase"); {
		case slices.Contains(ready, now):
			return ""
		case now == "":
			return "it has no status.phase yet"
		default:
			return "its status.phase is " + shown(now)
		}
	}
}

// never waits for anything.
func never(object) string { return "" }

// maxShown is how many bytes of a value of an object are shown: 32.
const maxShown = 32

// shown is a value of an object, as it can be shown.
func shown(value string) string { return clip.Ellipsis(printable.Line(value), maxShown) }
