// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// item is a packed object: its key and resourceVersion, the values that each index has of it, and the object itself.
// What comes first can be read without unpacking the rest.
type item string

// newItem packs an object. values are those of each index, within the object's namespace.
func newItem(codec *Codec, o metav1.Object, values [][]string) item {
	w := writer{words: &codec.words}
	w.bytes([]byte(o.GetNamespace() + "/" + o.GetName()))
	w.note(o.GetNamespace())
	w.note(o.GetName())
	w.header(o.GetResourceVersion())
	for _, of := range values {
		w.count(len(of))
		for _, value := range of {
			w.header(value)
		}
	}
	codec.pack(&w, o)
	return item(w.out) // A copy, without what the buffer has room for.
}

func (i item) unpack(codec *Codec, indexes int) any {
	r := reader{in: string(i), words: &codec.words}
	namespace, name, _ := strings.Cut(r.bytes(), "/")
	r.note(strings.Clone(namespace))
	r.note(strings.Clone(name))
	r.header()
	for range indexes {
		for range r.count() {
			r.header()
		}
	}
	return codec.unpack(&r)
}

// header writes a text that can be read without those before it. What follows may refer to it.
func (w *writer) header(s string) {
	w.count(len(s))
	w.out = append(w.out, s...)
	w.note(s)
}

func (r *reader) header() { r.note(strings.Clone(r.bytes())) }

// key of the object in the store, as a part of the item.
func (i item) key() string {
	r := reader{in: string(i)}
	return r.bytes()
}

// namespace of the object.
func (i item) namespace() string {
	namespace, _, _ := strings.Cut(i.key(), "/")
	return namespace
}

// GetObjectMeta lets a store see the key and the resourceVersion. As a name, the key needs no memory of its own there.
func (i item) GetObjectMeta() metav1.Object {
	r := reader{in: string(i)}
	return &metav1.ObjectMeta{Name: r.bytes(), ResourceVersion: r.bytes()}
}

// version is the object's resourceVersion.
func (i item) version() string {
	r := reader{in: string(i)}
	r.bytes()
	return r.bytes()
}

// values that the index of that number has of the object, within its namespace.
func (i item) values(index int) (values []string) {
	r := reader{in: string(i)}
	r.bytes()
	r.bytes()
	for range index {
		for range r.count() {
			r.bytes()
		}
	}
	for range r.count() {
		values = append(values, r.bytes())
	}
	return values
}

// has reports whether the index of that number has the value of the object.
func (i item) has(index int, value string) bool { return slices.Contains(i.values(index), value) }
