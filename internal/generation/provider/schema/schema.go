// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema adapts the JSON schema of a tool's arguments to a provider. It is pure, and returns what it omits.
// Everything that a provider does not refuse stays, whether its models follow it or not.
package schema

import (
	"fmt"
	"maps"
	"regexp"
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

// anthropicKeys are the names of arguments that Anthropic takes, from its answer: "input_schema.properties: Property
// keys should match pattern".
var anthropicKeys = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// ForAnthropic is the schema as Anthropic takes it, and what was omitted: keywords, and arguments because of their
// names. A schema must be of draft 2020-12, which writes lists of fixed positions in another way than those before.
func ForAnthropic(whole Object) (Object, []string) {
	fitting, left := without(whole, anthropicRefuses)
	fitting, _ = changed(fitting, withPrefixItems).(Object)
	properties, _ := fitting["properties"].(Object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !anthropicKeys.MatchString(name) {
			delete(properties, name)
			left = append(left, fmt.Sprintf("argument %.80q, because of its name", name))
		}
	}
	if required, ok := fitting["required"].([]any); ok {
		fitting["required"] = slices.DeleteFunc(slices.Clone(required), func(name any) bool {
			text, ok := name.(string)
			return ok && !anthropicKeys.MatchString(text)
		})
	}
	return fitting, left
}

// ForOpenAI is the schema as OpenAI takes it, and the keywords that were omitted. An object must name its properties,
// and a list what is in it: "array schema missing items".
func ForOpenAI(whole Object) (Object, []string) {
	fitting, left := without(whole, openAIRefuses)
	fitting, _ = changed(fitting, withItems).(Object)
	return withProperties(fitting), left
}

// withPrefixItems changes a list of fixed positions of earlier drafts to one of draft 2020-12.
func withPrefixItems(s Object) {
	positions, ok := s["items"].([]any)
	if !ok {
		return
	}
	delete(s, "items")
	if more, ok := s["additionalItems"]; ok {
		s["items"] = more
		delete(s, "additionalItems")
	}
	if len(positions) > 0 {
		s["prefixItems"] = positions
	}
}

// withItems gives a list one schema for all that is in it.
func withItems(s Object) {
	switch items := s["items"].(type) {
	case []any:
		delete(s, "additionalItems")
		s["items"] = Object{}
		if len(items) > 0 {
			s["items"] = Object{"anyOf": items}
		}
	case nil:
		if isList(s) {
			s["items"] = Object{}
		}
	}
}

// isList reports whether the type of a schema is that of a list, or may be.
func isList(s Object) bool {
	types, _ := s["type"].([]any)
	return s["type"] == "array" || slices.Contains(types, any("array"))
}

// changed is a copy of a schema, in which it and all schemas below are changed, the inner ones first.
func changed(value any, change func(Object)) any {
	switch value := value.(type) {
	case Object:
		out := make(Object, len(value))
		for keyword, inner := range value {
			switch members, ok := inner.(Object); {
			case values[keyword]:
				out[keyword] = inner
			case names[keyword] && ok:
				named := make(Object, len(members))
				for name, member := range members {
					named[name] = changed(member, change)
				}
				out[keyword] = named
			default:
				out[keyword] = changed(inner, change)
			}
		}
		change(out)
		return out
	case []any:
		out := make([]any, len(value))
		for i := range value {
			out[i] = changed(value[i], change)
		}
		return out
	}
	return value
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
