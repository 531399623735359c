// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// ForGemini is the schema as Gemini's parametersJsonSchema takes it, and what was omitted. Gemini refuses a reference
// with more next to it than a description and a default ("if a schema node has $ref set, then only description and
// default can be set alongside it"), and has not always followed one: its target replaces it. A schema
// that refers to itself keeps the reference.
func ForGemini(whole Object) (Object, []string) {
	w := &walker{root: whole, left: maxNodes}
	fitting := w.object(whole, nil)
	for _, name := range []string{"$schema", "$id", "$defs", "definitions"} {
		delete(fitting, name)
	}
	if w.refers {
		fitting["$defs"] = w.definitions()
	}
	return withProperties(fitting), w.dropped
}

// maxNodes is how large a schema may get by what is put in place of references; what goes beyond keeps its reference.
// Of texts and data, so many bytes count as a node.
const maxNodes, nodeBytes = 20_000, 50

// walker puts what is referred to in place of references.
type walker struct {
	root Object
	left int
	// keep leaves every reference; refers is whether any was left.
	keep, refers bool
	dropped      []string
}

// names are keywords whose value is an object of schemas by names, in which nothing is a keyword.
var names = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true,
	"dependentSchemas": true}

// values are keywords whose value is data.
var values = map[string]bool{"enum": true, "const": true, "default": true, "examples": true, "example": true,
	"required": true}

// object is a schema without references; within are those that lead to it.
func (w *walker) object(schema Object, within []string) Object {
	w.left--
	if ref, ok := schema["$ref"].(string); ok {
		return w.reference(ref, schema, within)
	}
	out := make(Object, len(schema))
	for keyword, value := range schema {
		switch {
		case keyword == "$defs" || keyword == "definitions":
			continue // What of them is used stands where it is used.
		case values[keyword]:
			w.left -= bytesOf(value) / nodeBytes
			out[keyword] = value
		case names[keyword]:
			out[keyword] = w.named(value, within)
		default:
			out[keyword] = w.value(value, within)
		}
	}
	return out
}

func (w *walker) value(value any, within []string) any {
	switch value := value.(type) {
	case Object:
		return w.object(value, within)
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = w.value(value[i], within)
		}
		return out
	}
	w.left -= bytesOf(value) / nodeBytes
	return value
}

// bytesOf is about how long a value is in JSON.
func bytesOf(value any) int {
	n := 8
	switch value := value.(type) {
	case string:
		n += len(value)
	case Object:
		for name, member := range value {
			n += len(name) + bytesOf(member)
		}
	case []any:
		for _, member := range value {
			n += bytesOf(member)
		}
	}
	return n
}

func (w *walker) named(value any, within []string) any {
	schemas, ok := value.(Object)
	if !ok {
		return value
	}
	out := make(Object, len(schemas))
	for name, schema := range schemas {
		out[name] = w.value(schema, within)
	}
	return out
}

// reference is what a schema refers to, with what it says besides.
func (w *walker) reference(ref string, schema Object, within []string) Object {
	referred, _ := find(w.root, ref)
	target, found := referred.(Object)
	switch {
	case !found:
		w.dropped = append(w.dropped, "the reference "+ref+", which leads nowhere")
		rest := maps.Clone(schema)
		delete(rest, "$ref")
		return w.object(rest, within)
	case slices.Contains(within, ref) || w.keep || w.left < 0:
		return w.kept(ref, schema)
	}
	out := w.object(target, append(slices.Clip(within), ref))
	if still, ok := out["$ref"].(string); ok {
		return w.kept(still, schema)
	}
	rest := maps.Clone(schema)
	delete(rest, "$ref")
	maps.Copy(out, w.object(rest, within))
	return out
}

// kept is a reference with no more than Gemini takes next to one.
func (w *walker) kept(ref string, schema Object) Object {
	w.refers = true
	out := Object{"$ref": strings.Replace(ref, "#/definitions/", "#/$defs/", 1)}
	for _, keyword := range []string{"description", "default"} {
		if value, ok := schema[keyword]; ok {
			out[keyword] = value
		}
	}
	return out
}

// definitions are those that references were left to.
func (w *walker) definitions() Object {
	out := Object{}
	w.keep = true
	for _, keyword := range []string{"definitions", "$defs"} {
		all, _ := w.root[keyword].(Object)
		for name, value := range all {
			out[name] = w.value(value, nil)
		}
	}
	return out
}

// find is what a reference within the schema leads to, if it is a path.
func find(root Object, ref string) (found any, ok bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	found = root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		if found, ok = into(found, strings.NewReplacer("~1", "/", "~0", "~").Replace(step)); !ok {
			return nil, false
		}
	}
	return found, true
}

// into is the member or element of that name.
func into(value any, name string) (found any, ok bool) {
	switch value := value.(type) {
	case Object:
		found, ok = value[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(value) {
			return value[i], true
		}
	}
	return found, ok
}
