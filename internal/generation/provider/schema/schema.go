// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema adapts the JSON schema of a tool's arguments to a provider. It is pure, and returns what it omits.
// Everything that a provider does not refuse stays, whether its models follow it or not.
package schema

import (
	"maps"
	"slices"
)

// Object is a JSON object.
type Object = map[string]any

var (
	// anthropicRefuses are keywords that Anthropic refuses at the top, from its answer: "input_schema does not support
	// oneOf, allOf, or anyOf at the top level".
	anthropicRefuses = []string{"allOf", "anyOf", "oneOf"}
	// openAIRefuses are those that OpenAI refuses there: "schema must have type 'object' and not have
	// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
	openAIRefuses = []string{"allOf", "anyOf", "enum", "not", "oneOf"}
)

// ForAnthropic is the schema as Anthropic takes it, and the keywords that were omitted.
func ForAnthropic(whole Object) (Object, []string) { return without(whole, anthropicRefuses) }

// ForOpenAI is the schema as OpenAI takes it, and the keywords that were omitted. An object must name its properties.
func ForOpenAI(whole Object) (Object, []string) {
	fitting, left := without(whole, openAIRefuses)
	return withProperties(fitting), left
}

// without is the schema without the keywords at its top.
func without(whole Object, keywords []string) (Object, []string) {
	var left []string
	for _, keyword := range keywords {
		if _, ok := whole[keyword]; ok {
			left = append(left, keyword+" at the top")
		}
	}
	if len(left) == 0 {
		return whole, nil
	}
	rest := maps.Clone(whole)
	maps.DeleteFunc(rest, func(keyword string, _ any) bool { return slices.Contains(keywords, keyword) })
	return rest, left
}

// withProperties is the schema, which names its properties, were it none.
func withProperties(whole Object) Object {
	if _, ok := whole["properties"]; ok || whole["type"] != "object" {
		return whole
	}
	rest := maps.Clone(whole)
	rest["properties"] = Object{}
	return rest
}
