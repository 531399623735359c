// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"strings"
)

// replacement stands for what cannot be written: providers refuse NUL,
// or store what they got where it cannot be stored.
const replacement = "\uFFFD"

// clean is the text without what providers refuse.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, replacement), "\x00", replacement)
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// object is the arguments of a call as a JSON object. Some providers refuse anything else, and some drop the call but
// keep its result; what a model wrote that is none becomes an empty object, and the result says what was wrong.
func object(input string) string {
	input = clean(input)
	var members map[string]any
	if json.Unmarshal([]byte(input), &members) != nil || members == nil {
		return "{}"
	}
	if !strings.Contains(input, `\u0000`) {
		return input
	}
	return withoutNUL(input)
}

// withoutNUL rewrites an object whose strings may have NULs.
func withoutNUL(input string) string {
	decoder := json.NewDecoder(strings.NewReader(input))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return "{}"
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(cleanValue(value)) != nil {
		return "{}"
	}
	return strings.TrimSpace(out.String())
}

func cleanValue(value any) any {
	switch value := value.(type) {
	case string:
		return clean(value)
	case []any:
		for i := range value {
			value[i] = cleanValue(value[i])
		}
	case map[string]any:
		cleaned := make(map[string]any, len(value))
		for k, v := range value {
			cleaned[clean(k)] = cleanValue(v)
		}
		return cleaned
	}
	return value
}

// validName is the text in the characters that every provider takes in ids and names of tools, at most max of them.
func validName(text string, limit int) string {
	valid := strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, text)
	return valid[:min(len(valid), limit)]
}
