// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arguments decodes the arguments of a call by the schema of its tool. Errors tell the model how to correct its
// call. The package is pure.
//
// A null stands for a missing argument: some models send it for each that they do not use.
package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"parley.dev/parley/internal/text/jsonschema"
)

// Schema is a JSON schema as in Definition.InputSchema of a tool.
type Schema = map[string]any

// Decode validates the arguments, a JSON object, and decodes them, with the defaults of missing ones. Integers may have
// a fraction of zero.
func Decode(schema Schema, input string, into any) error {
	args, err := jsonschema.Decode(input)
	if err != nil {
		return fmt.Errorf("the call was not made, reading its arguments: %w", err)
	}
	compiled, err := jsonschema.Compile(text(schema))
	if err != nil {
		return fmt.Errorf("reading the schema of the tool: %w", err)
	}
	args = fill(schema, args)
	if problems := compiled.ProblemsOf(args); problems != "" {
		return fmt.Errorf("the call was not made: %s. The arguments are: %s. Correct them and call again", problems,
			strings.Join(names(schema), ", "))
	}
	if err := json.Unmarshal([]byte(text(args)), into); err != nil {
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("the call was not made: %s is out of range. Correct it and call again", mismatch.Field)
		}
		return fmt.Errorf("reading the arguments: %w", err)
	}
	return nil
}

// text encodes a schema or decoded JSON, which never fails.
func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// fill returns the value with the defaults of the schema in place of nulls and missing members, and with integers as Go
// reads them.
func fill(schema Schema, value any) any {
	switch value := value.(type) {
	case nil:
		return schema["default"]
	case map[string]any:
		properties, _ := schema["properties"].(Schema)
		for name := range properties {
			property, _ := properties[name].(Schema)
			if value[name] = fill(property, value[name]); value[name] == nil {
				delete(value, name)
			}
		}
	case []any:
		items, _ := schema["items"].(Schema)
		for i := range value {
			value[i] = fill(items, value[i])
		}
	case json.Number:
		if schema["type"] == "integer" {
			return integer(value)
		}
	}
	return value
}

// integer returns a number without fraction and exponent if it is an integer of 64 bits.
func integer(number json.Number) json.Number {
	if exact, ok := new(big.Rat).SetString(string(number)); ok && exact.IsInt() && exact.Num().IsInt64() {
		return json.Number(exact.Num().String())
	}
	return number
}

// names are the arguments of a tool, the required ones first and marked as such.
func names(schema Schema) []string {
	properties, _ := schema["properties"].(Schema)
	required := Required(schema)
	names := make([]string, 0, len(properties))
	for _, name := range required {
		names = append(names, name+" (required)")
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, name) {
			names = append(names, name)
		}
	}
	return names
}

// Required are the names that an object must have.
func Required(schema Schema) []string {
	required, _ := schema["required"].([]string)
	return required
}

// The functions below make schemas that every provider takes: see internal/generation/provider/schema.

// Object has these properties and no others.
func Object(properties map[string]any, required ...string) Schema {
	schema := Schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// Text is a string of so many characters.
func Text(least, most int, description string) Schema {
	return Schema{"type": "string", "minLength": least, "maxLength": most, "description": description}
}

// Integer is a whole number.
func Integer(least, most, fallback int, description string) Schema {
	return Schema{"type": "integer", "minimum": least, "maximum": most, "default": fallback, "description": description}
}

// Boolean is false by default.
func Boolean(description string) Schema {
	return Schema{"type": "boolean", "default": false, "description": description}
}

// OneOf is one of the values.
func OneOf(description string, values ...string) Schema {
	return Schema{"type": "string", "enum": values, "description": description}
}
