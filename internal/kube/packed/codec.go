// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
)

// repeating are structs whose texts are a few that most objects have in common.
var repeating = map[reflect.Type]bool{
	reflect.TypeFor[metav1.TypeMeta]():       true,
	reflect.TypeFor[metav1.Condition]():      true,
	reflect.TypeFor[v1beta1.ModelIdentity](): true,
}

// isEnumeration reports whether the texts of a type are taken for a few that repeat: those of a type of the API's own.
func isEnumeration(t reflect.Type) bool {
	return t != reflect.TypeFor[string]() && t != reflect.TypeFor[types.UID]()
}

// isTime reports whether a type wraps a time, none of whose fields is exported.
func isTime(t reflect.Type) bool {
	return t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.MicroTime]()
}

// value writes a value of the types that API objects are made from, and repeats says whether its texts do in other
// objects. It panics if there is another type.
func (w *writer) value(v reflect.Value, repeats bool) {
	switch v.Kind() {
	case reflect.String:
		w.text(v.String(), repeats || isEnumeration(v.Type()))
	case reflect.Bool:
		w.bit(v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		w.number(v.Int())
	case reflect.Pointer:
		w.value(v.Elem(), repeats)
	case reflect.Slice:
		w.slice(v, repeats)
	case reflect.Map:
		w.count(v.Len())
		for entry := v.MapRange(); entry.Next(); {
			w.value(entry.Key(), true)
			w.value(entry.Value(), repeats)
		}
	case reflect.Struct:
		w.structure(v)
	default:
		panic(fmt.Sprintf("a %s cannot be packed", v.Type()))
	}
}

// bit writes a bool. One that is false is written behind a pointer alone.
func (w *writer) bit(set bool) {
	if set {
		w.count(1)
	} else {
		w.count(0)
	}
}

// value reads into v, which is zero, what was written of a value of its type.
func (r *reader) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(r.text())
	case reflect.Bool:
		v.SetBool(r.count() == 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(r.number())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(v.Elem())
	case reflect.Slice:
		r.slice(v)
	case reflect.Map:
		n := r.count()
		v.Set(reflect.MakeMapWithSize(v.Type(), n))
		for range n {
			key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			r.value(key)
			r.value(element)
			v.SetMapIndex(key, element)
		}
	case reflect.Struct:
		r.structure(v)
	}
}

// structure writes the fields that are not zero, each behind how far it is from the last one, and 0 at the end.
func (w *writer) structure(v reflect.Value) {
	t := v.Type()
	if isTime(t) {
		w.time(v)
		return
	}
	repeats, last := repeating[t], -1
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() {
			w.count(i - last)
			w.value(field, repeats)
			last = i
		}
	}
	w.count(0)
}

func (r *reader) structure(v reflect.Value) {
	if isTime(v.Type()) {
		r.time(v)
		return
	}
	i := -1
	for next := r.count(); next > 0; next = r.count() {
		i += next
		r.value(v.Field(i))
	}
}

func (w *writer) slice(v reflect.Value, repeats bool) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		w.bytes(string(v.Bytes()))
		return
	}
	w.count(v.Len())
	for i := range v.Len() {
		w.value(v.Index(i), repeats)
	}
}

func (r *reader) slice(v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes([]byte(r.bytes()))
		return
	}
	n := r.count()
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		r.value(v.Index(i))
	}
}

// time writes seconds since the last time of the object, which are often none, and nanoseconds if there are any.
func (w *writer) time(v reflect.Value) {
	t, _ := reflect.TypeAssert[time.Time](v.Field(0))
	nanos := t.Nanosecond()
	since := (t.Unix() - w.last) * 2
	if nanos != 0 {
		since++
	}
	w.last = t.Unix()
	w.number(since)
	if nanos != 0 {
		w.count(nanos)
	}
}

func (r *reader) time(v reflect.Value) {
	since, nanos := r.number(), 0
	if since&1 == 1 {
		nanos = r.count()
	}
	r.last += since >> 1
	v.Field(0).Set(reflect.ValueOf(time.Unix(r.last, int64(nanos))))
}
