// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"reflect"
	"time"
)

// structCoder writes the fields that are not zero, each behind how far it is from the last one, and 0 at the end.
type structCoder struct{ fields []coder }

func (c *structCoder) encode(w *writer, v reflect.Value) {
	last := -1
	for i, field := range c.fields {
		if f := v.Field(i); !f.IsZero() {
			w.count(i - last)
			field.encode(w, f)
			last = i
		}
	}
	w.count(0)
}

func (c *structCoder) decode(r *reader, v reflect.Value) {
	i := -1
	for next := r.count(); next > 0; next = r.count() {
		i += next
		c.fields[i].decode(r, v.Field(i))
	}
}

type textCoder struct{ repeats bool }

func (c textCoder) encode(w *writer, v reflect.Value) { w.text(v.String(), c.repeats) }
func (textCoder) decode(r *reader, v reflect.Value)   { v.SetString(r.text()) }

type boolCoder struct{}

func (boolCoder) encode(w *writer, v reflect.Value) {
	if v.Bool() {
		w.count(1)
	} else {
		w.count(0)
	}
}
func (boolCoder) decode(r *reader, v reflect.Value) { v.SetBool(r.count() == 1) }

type intCoder struct{}

func (intCoder) encode(w *writer, v reflect.Value) { w.number(v.Int()) }
func (intCoder) decode(r *reader, v reflect.Value) { v.SetInt(r.number()) }

type byteCoder struct{}

func (byteCoder) encode(w *writer, v reflect.Value) { w.count(int(v.Uint())) }
func (byteCoder) decode(r *reader, v reflect.Value) { v.SetUint(uint64(r.count())) }

// timeCoder writes seconds since the last time of the object, which are often none, and nanoseconds if there are any.
type timeCoder struct{}

func (timeCoder) encode(w *writer, v reflect.Value) {
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

func (timeCoder) decode(r *reader, v reflect.Value) {
	since, nanos := r.number(), 0
	if since&1 == 1 {
		nanos = r.count()
	}
	r.last += since >> 1
	v.Field(0).Set(reflect.ValueOf(time.Unix(r.last, int64(nanos))))
}

// rawCoder writes JSON as it came. Nothing that decodes an API object fills the other field of a RawExtension.
type rawCoder struct{}

func (rawCoder) encode(w *writer, v reflect.Value) { w.bytes(v.Field(0).Bytes()) }
func (rawCoder) decode(r *reader, v reflect.Value) { v.Field(0).SetBytes([]byte(r.bytes())) }

type pointerCoder struct{ element coder }

func (c pointerCoder) encode(w *writer, v reflect.Value) { c.element.encode(w, v.Elem()) }
func (c pointerCoder) decode(r *reader, v reflect.Value) {
	v.Set(reflect.New(v.Type().Elem()))
	c.element.decode(r, v.Elem())
}

type sliceCoder struct{ element coder }

func (c sliceCoder) encode(w *writer, v reflect.Value) {
	w.count(v.Len())
	for i := range v.Len() {
		c.element.encode(w, v.Index(i))
	}
}

func (c sliceCoder) decode(r *reader, v reflect.Value) {
	n := r.count()
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		c.element.decode(r, v.Index(i))
	}
}

type mapCoder struct{ key, element coder }

func (c mapCoder) encode(w *writer, v reflect.Value) {
	w.count(v.Len())
	for entry := v.MapRange(); entry.Next(); {
		c.key.encode(w, entry.Key())
		c.element.encode(w, entry.Value())
	}
}

func (c mapCoder) decode(r *reader, v reflect.Value) {
	n := r.count()
	v.Set(reflect.MakeMapWithSize(v.Type(), n))
	for range n {
		key, element := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		c.key.decode(r, key)
		c.element.decode(r, element)
		v.SetMapIndex(key, element)
	}
}
