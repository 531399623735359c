// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arguments decodes the arguments of a call by the schema of its tool, the same that the model was given. What
// is wrong is reported in words from which a model can correct its call. The package is pure.
//
// A null stands for an argument that is not given: some models send it for each that they do not use.
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

// Decode validates the arguments, a JSON object, and decodes them, with the defaults of those that are not given.
// Numbers of type integer may be written with a fraction of zero.
func Decode(schema Schema, input string, into any) error {
	given, err := jsonschema.Decode(input)
	if err != nil {
		return fmt.Errorf("the call was not made, reading its arguments: %w", err)
	}
	compiled, err := jsonschema.Compile(text(schema))
	if err != nil {
		return fmt.Errorf("reading the schema of the tool: %w", err)
	}
	given = fill(schema, given)
	if problems := compiled.ProblemsOf(given); problems != "" {
		return fmt.Errorf("the call was not made: %s. The arguments are: %s. Correct them and call again", problems,
			strings.Join(Names(schema), ", "))
	}
	if err := json.Unmarshal([]byte(text(given)), into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("the call was not made: %s is out of range. Correct it and call again", wrong.Field)
		}
		return fmt.Errorf("reading the arguments: %w", err)
	}
	return nil
}

// text is the value as JSON. Schemas and decoded JSON always can be written.
func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// fill returns the value without nulls of arguments that need not be given, with the defaults of those, and with whole
// numbers as Go reads them.
func fill(schema Schema, given any) any {
	switch given := given.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(Schema)
		for key := range properties {
			property, _ := properties[key].(Schema)
			fillMember(property, given, key)
		}
	case []any:
		items, _ := schema["items"].(Schema)
		for i := range given {
			given[i] = fill(items, given[i])
		}
	case json.Number:
		if schema["type"] == "integer" {
			return whole(given)
		}
	}
	return given
}

func fillMember(property Schema, object map[string]any, key string) {
	if object[key] != nil {
		object[key] = fill(property, object[key])
		return
	}
	delete(object, key)
	if fallback, ok := property["default"]; ok {
		object[key] = fallback
	}
}

// whole is a number without its fraction if that is zero.
func whole(number json.Number) json.Number {
	exact, ok := new(big.Rat).SetString(string(number))
	if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
		return number
	}
	return json.Number(exact.Num().String())
}

// Names are the arguments of a tool, the required ones first and marked as such.
func Names(schema Schema) []string {
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
