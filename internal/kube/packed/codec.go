// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package packed keeps API objects in few bytes: an informer whose store holds each object as one string, and makes the
// object again when somebody reads it or is told of it. Most objects of a cache are read rarely and stay for long, and
// an object in Go is many times what it says.
package packed

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Codec packs objects of one type and unpacks them. It is safe for concurrent use.
type Codec struct {
	object reflect.Type
	coder  coder
	words  words
}

// NewCodec returns a codec for objects of the type of example, a pointer to a struct. All exported fields are packed,
// of whatever the API is made from; an error names a type that no codec knows. repeating are examples of further
// structs of which all texts are a few that come again in most objects.
func NewCodec(example runtime.Object, repeating ...any) (*Codec, error) {
	object := reflect.TypeOf(example).Elem()
	c := compiler{map[reflect.Type]*structCoder{}, map[reflect.Type]bool{
		reflect.TypeFor[metav1.TypeMeta]():       true,
		reflect.TypeFor[metav1.OwnerReference](): true,
		reflect.TypeFor[metav1.Condition]():      true,
	}}
	for _, one := range repeating {
		c.repeating[reflect.TypeOf(one)] = true
	}
	coder, err := c.coderOf(object, false)
	if err != nil {
		return nil, fmt.Errorf("packing %s: %w", object, err)
	}
	return &Codec{object: object, coder: coder}, nil
}

// pack appends the object to what has been written.
func (c *Codec) pack(w *writer, o any) {
	c.coder.encode(w, reflect.ValueOf(o).Elem())
}

// unpack makes the object of what pack appended. It shares no memory with that.
func (c *Codec) unpack(r *reader) any {
	o := reflect.New(c.object)
	c.coder.decode(r, o.Elem())
	return o.Interface()
}

// coder writes and reads values of one type. What it reads it sets in a value that is zero.
type coder interface {
	encode(w *writer, v reflect.Value)
	decode(r *reader, v reflect.Value)
}

// compiler makes coders, each struct's once, because structs may contain themselves.
type compiler struct {
	known map[reflect.Type]*structCoder
	// repeating are structs of which all texts are a few that come again in most objects.
	repeating map[reflect.Type]bool
}

// coderOf makes the coder of a type; of texts it is told whether they are a few that repeat.
func (c compiler) coderOf(t reflect.Type, repeats bool) (coder, error) {
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
		return timeCoder{}, nil
	case reflect.TypeFor[runtime.RawExtension]():
		return rawCoder{}, nil
	}
	switch t.Kind() {
	case reflect.String:
		return textCoder{repeats || isEnumeration(t)}, nil
	case reflect.Bool:
		return boolCoder{}, nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return intCoder{}, nil
	case reflect.Uint8:
		return byteCoder{}, nil
	case reflect.Struct:
		return c.structOf(t)
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return c.containerOf(t, repeats)
	}
	return nil, fmt.Errorf("%s is of a kind that cannot be packed", t)
}

// isEnumeration reports whether the texts of a type are taken for a few that repeat: those of a type of the API's own.
func isEnumeration(t reflect.Type) bool { return t.PkgPath() != "" && t.Name() != "UID" }

func (c compiler) containerOf(t reflect.Type, repeats bool) (coder, error) {
	element, err := c.coderOf(t.Elem(), repeats)
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case reflect.Pointer:
		return pointerCoder{element}, nil
	case reflect.Slice:
		return sliceCoder{element}, nil
	}
	key, err := c.coderOf(t.Key(), true)
	return mapCoder{key, element}, err
}

func (c compiler) structOf(t reflect.Type) (coder, error) {
	if known := c.known[t]; known != nil {
		return known, nil
	}
	s := &structCoder{}
	c.known[t] = s
	for field := range t.Fields() {
		if !field.IsExported() {
			return nil, fmt.Errorf("%s has a field that is not exported: %s", t, field.Name)
		}
		coder, err := c.coderOf(field.Type, c.repeating[t])
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", field.Name, err)
		}
		s.fields = append(s.fields, coder)
	}
	return s, nil
}
