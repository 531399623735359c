// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"slices"
)

// strictKeywords are those that OpenAI takes in a schema that its models follow without exception, from its page on
// structured outputs.
var strictKeywords = []string{"$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum",
	"exclusiveMaximum", "exclusiveMinimum", "format", "items", "maximum", "maxItems", "minimum", "minItems", "multipleOf",
	"pattern", "properties", "required", "title", "type"}

// IsStrict reports whether OpenAI's models can be made to follow the schema without exception: each object names all of
// its properties as required and takes no others, and only keywords stand in it that OpenAI supports there.
func IsStrict(whole Object) bool { return conforms(whole, strictKeywords, requiresAll) }

// requiresAll reports whether an object names all of its properties as required and takes no others, and a list what is
// in it.
func requiresAll(s Object) bool {
	if isList(s) && s["items"] == nil {
		return false
	}
	properties, _ := s["properties"].(Object)
	if s["type"] != "object" && properties == nil {
		return true
	}
	required, _ := s["required"].([]any)
	return s["additionalProperties"] == false && len(required) == len(properties) &&
		!slices.ContainsFunc(required, func(name any) bool {
			text, _ := name.(string)
			return properties[text] == nil
		})
}

// conforms reports whether a schema and all schemas in it have no other keywords, and meet the condition.
func conforms(value any, keywords []string, condition func(Object) bool) bool {
	s, ok := value.(Object)
	if !ok {
		return false
	}
	for keyword, value := range s {
		below, ok := schemasIn(keyword, value)
		if !ok || !slices.Contains(keywords, keyword) ||
			slices.ContainsFunc(below, func(b any) bool { return !conforms(b, keywords, condition) }) {
			return false
		}
	}
	return condition(s)
}

// schemasIn are the schemas in the value of a keyword; false: the value is malformed.
func schemasIn(keyword string, value any) (below []any, ok bool) {
	switch keyword {
	case "$defs", "properties":
		members, ok := value.(Object)
		return slices.Collect(maps.Values(members)), ok
	case "allOf", "anyOf":
		below, ok = value.([]any)
		return below, ok
	case "items":
		return []any{value}, true
	}
	return nil, true
}
