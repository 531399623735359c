// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// item is a packed object: its key and resourceVersion, the values that each index has of it, and the object itself.
// What comes first can be read without unpacking the rest.
type item string

// newItem packs an object. values are those of each index.
func newItem(words *words, o metav1.Object, values [][]string) item {
	w := writer{words: words}
	w.bytes(o.GetNamespace() + "/" + o.GetName())
	w.note(o.GetNamespace())
	w.note(o.GetName())
	w.bytes(o.GetResourceVersion())
	w.note(o.GetResourceVersion())
	for _, of := range values {
		w.count(len(of))
		for _, value := range of { // Behind the object's namespace, if it is there.
			value = strings.TrimPrefix(value, o.GetNamespace())
			w.bytes(value)
			w.note(strings.TrimPrefix(value, "/"))
		}
	}
	w.value(reflect.ValueOf(o).Elem(), false)
	return item(w.out) // A copy, without what the buffer has room for.
}

// unpack makes the object again, which shares no memory with the item.
func (i item) unpack(words *words, object reflect.Type, indexes int) any {
	r := reader{in: string(i), words: words}
	namespace, name, _ := strings.Cut(r.bytes(), "/")
	r.note(strings.Clone(namespace))
	r.note(strings.Clone(name))
	r.note(strings.Clone(r.bytes()))
	for range indexes {
		for range r.count() {
			r.note(strings.Clone(strings.TrimPrefix(r.bytes(), "/")))
		}
	}
	o := reflect.New(object)
	r.value(o.Elem())
	return o.Interface()
}

// GetObjectMeta lets a store see the key and the resourceVersion. As a name, the key needs no memory of its own there.
func (i item) GetObjectMeta() metav1.Object {
	r := reader{in: string(i)}
	return &metav1.ObjectMeta{Name: r.bytes(), ResourceVersion: r.bytes()}
}

// values that the index of that number has of the object.
func (i item) values(index int) (values []string) {
	r := reader{in: string(i)}
	namespace, _, _ := strings.Cut(r.bytes(), "/")
	r.bytes()
	for range index {
		for range r.count() {
			r.bytes()
		}
	}
	for range r.count() {
		value := r.bytes()
		if value == "" || value[0] == '/' {
			value = namespace + value
		}
		values = append(values, strings.Clone(value))
	}
	return values
}
