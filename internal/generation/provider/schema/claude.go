// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"slices"
)

var (
	// claudeKeywords are those that Anthropic takes in a schema of a reply, from its page on structured outputs; $ref,
	// $defs and definitions are looked through.
	claudeKeywords = []string{"additionalProperties", "allOf", "anyOf", "const", "default", "description", "enum",
		"format", "items", "minItems", "properties", "required", "title", "type"}
	// claudeFormats are the formats that it takes.
	claudeFormats = []any{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)

// IsForClaude reports whether Anthropic takes the schema as that of a reply: with no keyword that it refuses, with no
// reference to itself, and with objects that take no other properties.
func IsForClaude(whole Object) bool {
	plain, left := ForGemini(whole)
	_, recursive := plain["$defs"]
	return len(left) == 0 && !recursive && conforms(plain, claudeKeywords, claudeTakes)
}

// claudeTakes reports whether Anthropic takes the values of a schema's own keywords. A type that may be an object or
// something else is refused.
func claudeTakes(s Object) bool {
	types, _ := s["type"].([]any)
	enum, _ := s["enum"].([]any)
	format, hasFormat := s["format"]
	least, hasLeast := s["minItems"]
	_, hasProperties := s["properties"]
	return !slices.Contains(types, any("object")) && !slices.ContainsFunc(enum, isComplex) &&
		(!hasFormat || slices.Contains(claudeFormats, format)) &&
		(!hasLeast || slices.Contains([]string{"0", "1"}, fmt.Sprint(least))) &&
		(!hasProperties && s["type"] != "object" || s["additionalProperties"] == false)
}

// isComplex reports whether a value is a list or an object.
func isComplex(value any) bool {
	switch value.(type) {
	case Object, []any:
		return true
	}
	return false
}
