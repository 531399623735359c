// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
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
	return len(left) == 0 && !recursive && claudeTakes(plain)
}

func claudeTakes(value any) bool {
	s, ok := value.(Object)
	if !ok {
		return false
	}
	for keyword, value := range s {
		if !slices.Contains(claudeKeywords, keyword) || !claudeTakesKeyword(keyword, value) {
			return false
		}
	}
	_, named := s["properties"]
	return !named && s["type"] != "object" || s["additionalProperties"] == false
}

func claudeTakesKeyword(keyword string, value any) bool {
	members, _ := value.(Object)
	list, _ := value.([]any)
	refused := func(s any) bool { return !claudeTakes(s) }
	switch keyword {
	case "properties":
		return !slices.ContainsFunc(slices.Collect(maps.Values(members)), refused)
	case "allOf", "anyOf":
		return !slices.ContainsFunc(list, refused)
	case "items":
		return claudeTakes(value)
	case "type": // It takes an object where nothing else may stand.
		return !slices.Contains(list, any("object"))
	case "enum":
		return !slices.ContainsFunc(list, isComplex)
	case "format":
		return slices.Contains(claudeFormats, value)
	case "minItems":
		return slices.Contains([]string{"0", "1"}, fmt.Sprint(value))
	}
	return true
}

// isComplex reports whether a value is a list or an object.
func isComplex(value any) bool {
	switch value.(type) {
	case Object, []any:
		return true
	}
	return false
}
