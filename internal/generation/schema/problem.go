// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Problem is what a provider refuses of a schema, with where it stands; empty if there is nothing. Providers refuse a
// whole request because of a keyword whose value has the wrong type, or a reference to nothing within the schema.
func Problem(whole Object) string {
	c := &checker{root: whole}
	c.schema("", whole)
	return c.problem
}

type checker struct {
	root    Object
	problem string
}

// report keeps the first problem.
func (c *checker) report(path, problem string) {
	if c.problem == "" {
		c.problem = fmt.Sprintf("%s %s", path, problem)
	}
}

func (c *checker) schema(path string, value any) {
	switch value := value.(type) {
	case bool:
	case Object:
		for _, keyword := range slices.Sorted(maps.Keys(value)) {
			c.keyword(path+"/"+keyword, keyword, value[keyword])
		}
	default:
		c.report(path, "must be a schema")
	}
}

// types are what the type of a value can be.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// keyword checks the value of a keyword. One that is not known passes.
func (c *checker) keyword(path, keyword string, value any) {
	_, isList := value.([]any)
	switch keyword {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		c.members(path, value)
	case "items", "additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then",
		"unevaluatedItems", "unevaluatedProperties":
		if keyword == "items" && isList {
			c.elements(path, value, c.schema)
			return
		}
		c.schema(path, value)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		c.elements(path, value, c.schema)
	case "required":
		c.elements(path, value, c.text)
	case "type":
		if isList {
			c.elements(path, value, c.typeName)
			return
		}
		c.typeName(path, value)
	default:
		c.plain(path, keyword, value)
	}
}

// plain checks the value of a keyword that has no schemas.
func (c *checker) plain(path, keyword string, value any) {
	switch keyword {
	case "enum":
		c.elements(path, value, func(string, any) {})
	case "$ref":
		c.text(path, value)
		c.reference(path, value)
	case "description", "format", "pattern", "title":
		c.text(path, value)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems",
		"maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		c.number(path, value)
	}
}

func (c *checker) members(path string, value any) {
	members, ok := value.(Object)
	if !ok {
		c.report(path, "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c.schema(path+"/"+name, members[name])
	}
}

func (c *checker) elements(path string, value any, each func(path string, value any)) {
	elements, ok := value.([]any)
	if !ok {
		c.report(path, "must be a list")
	}
	for i, element := range elements {
		each(path+"/"+strconv.Itoa(i), element)
	}
}

func (c *checker) text(path string, value any) {
	if _, ok := value.(string); !ok {
		c.report(path, "must be a text")
	}
}

func (c *checker) number(path string, value any) {
	switch value.(type) {
	case float64, json.Number:
	default:
		c.report(path, "must be a number")
	}
}

func (c *checker) typeName(path string, value any) {
	if name, ok := value.(string); !ok || !slices.Contains(types, name) {
		c.report(path, "must be one of "+strings.Join(types, ", "))
	}
}

// reference checks a reference within the schema that is a path. Others lead to names, or to other documents.
func (c *checker) reference(path string, value any) {
	ref, _ := value.(string)
	if _, found := find(c.root, ref); strings.HasPrefix(ref, "#/") && !found {
		c.report(path, "refers to "+ref+", which does not exist")
	}
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
