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
func IsStrict(whole Object) bool {
	for keyword, value := range whole {
		if !slices.Contains(strictKeywords, keyword) || !strictBelow(keyword, value) {
			return false
		}
	}
	properties, _ := whole["properties"].(Object)
	if whole["type"] != "object" && properties == nil {
		return true
	}
	required, _ := whole["required"].([]any)
	return whole["additionalProperties"] == false && len(required) == len(properties) &&
		!slices.ContainsFunc(required, func(name any) bool {
			text, _ := name.(string)
			return properties[text] == nil
		})
}

// strictBelow reports the same of the schemas within the value of a keyword.
func strictBelow(keyword string, value any) bool {
	switch keyword {
	case "$defs", "properties":
		members, ok := value.(Object)
		return ok && !slices.ContainsFunc(slices.Collect(maps.Values(members)), isLoose)
	case "anyOf":
		alternatives, ok := value.([]any)
		return ok && !slices.ContainsFunc(alternatives, isLoose)
	case "items":
		return !isLoose(value)
	}
	return true
}

func isLoose(value any) bool {
	below, ok := value.(Object)
	return !ok || !IsStrict(below)
}
