// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley.dev/parley/internal/clip"
)

// maxQuoted is how many characters of a wrong value are told.
const maxQuoted = 60

// value checks the value at a path, and returns it as it is to be decoded.
func (c *checker) value(path string, schema Schema, given any) any {
	switch schema["type"] {
	case "object":
		return c.object(path, schema, given)
	case "array":
		return c.array(path, schema, given)
	case "string":
		c.text(path, schema, given)
	case "integer":
		return c.integer(path, schema, given)
	case "boolean":
		if _, ok := given.(bool); !ok {
			c.report("%s must be true or false, not %s", name(path), quoted(given))
		}
	}
	return given
}

// object checks an object by its properties.
func (c *checker) object(path string, schema Schema, given any) any {
	object, ok := given.(map[string]any)
	if !ok {
		c.report("%s must be an object, not %s", name(path), quoted(given))
		return nil
	}
	properties, _ := schema["properties"].(Schema)
	checked := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[key].(Schema)
		value := object[key]
		switch fallback, hasDefault := property["default"]; {
		case value != nil:
			checked[key] = c.value(join(path, key), property, value)
		case slices.Contains(Required(schema), key):
			c.report("%s is missing", join(path, key))
		case hasDefault:
			checked[key] = fallback
		}
	}
	if schema["additionalProperties"] == false {
		c.unknown(path, properties, object)
	}
	return checked
}

// unknown reports what an object has that is none of its properties.
func (c *checker) unknown(path string, properties Schema, object map[string]any) {
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if _, ok := properties[key]; !ok {
			unknown = append(unknown, join(path, key))
		}
	}
	if len(unknown) == 0 {
		return
	}
	more := ""
	if n := len(unknown) - maxProblems; n > 0 {
		unknown, more = unknown[:maxProblems], fmt.Sprintf(", and %d more", n)
	}
	for i := range unknown {
		unknown[i] = strconv.Quote(clip.Ellipsis(unknown[i], maxQuoted))
	}
	c.report("there are no arguments %s%s", strings.Join(unknown, ", "), more)
}

func (c *checker) array(path string, schema Schema, given any) any {
	list, ok := given.([]any)
	if !ok {
		c.report("%s must be a list, not %s", name(path), quoted(given))
		return nil
	}
	if least, ok := schema["minItems"].(int); ok && len(list) < least {
		c.report("%s must have at least %d entries, not %d", name(path), least, len(list))
	}
	if most, ok := schema["maxItems"].(int); ok && len(list) > most {
		c.report("%s must have at most %d entries, not %d", name(path), most, len(list))
		return nil
	}
	items, _ := schema["items"].(Schema)
	checked := make([]any, len(list))
	for i := range list {
		checked[i] = c.value(fmt.Sprintf("%s[%d]", path, i), items, list[i])
	}
	return checked
}

func (c *checker) text(path string, schema Schema, given any) {
	text, ok := given.(string)
	if !ok {
		c.report("%s must be a text, not %s", name(path), quoted(given))
		return
	}
	length := utf8.RuneCountInString(text)
	if least, ok := schema["minLength"].(int); ok && length < least {
		c.report("%s must not be empty", name(path))
	}
	if most, ok := schema["maxLength"].(int); ok && length > most {
		c.report("%s must have at most %d characters, not %d", name(path), most, length)
	}
	if allowed, ok := schema["enum"].([]string); ok && !slices.Contains(allowed, text) {
		c.report("%s must be one of %s, not %s", name(path), strings.Join(allowed, ", "), quoted(given))
	}
}

func (c *checker) integer(path string, schema Schema, given any) any {
	least, most := bounds(schema)
	number, _ := given.(json.Number)
	value, ok := whole(number)
	if !ok || value < least || value > most {
		c.report("%s must be a whole number from %d to %d, not %s", name(path), least, most, quoted(given))
	}
	return value
}

// bounds are those of an integer, by default those within which every float is exact.
func bounds(schema Schema) (least, most int) {
	const exact = 1 << 53
	least, most = -exact, exact
	if bound, ok := schema["minimum"].(int); ok {
		least = bound
	}
	if bound, ok := schema["maximum"].(int); ok {
		most = bound
	}
	return least, most
}

// whole is the number if it is a whole one. The length is bounded because an exponent makes a long one of a short text.
func whole(number json.Number) (int, bool) {
	if number == "" || len(number) > 32 || strings.ContainsAny(string(number), "eE") {
		return 0, false
	}
	exact, ok := new(big.Rat).SetString(string(number))
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return 0, false
	}
	return int(exact.Num().Int64()), true
}

func name(path string) string {
	if path == "" {
		return "the whole of the arguments"
	}
	return path
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// quoted is a wrong value as it is told.
func quoted(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the text %q", clip.Ellipsis(value, maxQuoted))
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return clip.Ellipsis(fmt.Sprint(value), maxQuoted)
}
