// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"slices"
	"strings"
)

// Field is a field of a request that chats have no meaning for.
type Field struct {
	name, instead string
	value         json.RawMessage
	harmless      []string
}

// Unhonoured is a field by its name and value, and what a client may do instead of giving it. Harmless are values that
// ask for nothing.
func Unhonoured(name, instead string, value json.RawMessage, harmless ...string) Field {
	return Field{name, instead, value, harmless}
}

// Refuse refuses the first of the fields that asks for something.
func Refuse(fields ...Field) error {
	for _, f := range fields {
		if given(f.value, f.harmless) {
			return Unsupported(f.name, "%s cannot be honoured: %s", f.name, f.instead)
		}
	}
	return nil
}

// Given reports whether a field has a value other than one that is empty.
func Given(field json.RawMessage) bool { return given(field, nil) }

func given(field json.RawMessage, harmless []string) bool {
	switch text := strings.TrimSpace(string(field)); text {
	case "", "null", "{}", "[]", `""`:
		return false
	default:
		return !slices.Contains(harmless, text)
	}
}
