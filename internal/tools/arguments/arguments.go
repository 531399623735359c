// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arguments checks the arguments of a call by the schema of its tool, the same that the model was given. What
// is wrong is told in words from which a model can correct its call: which argument, what it must be, what it was, and
// which arguments there are. The package is pure.
//
// It knows of JSON Schema what built-in tools use: type, properties, required, additionalProperties false, items, enum,
// minimum, maximum, minLength, maxLength, minItems, maxItems and default. A null stands for an argument that is not
// given: some models send it for each that they do not use.
package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Schema is a JSON schema as Tool.InputSchema returns it.
type Schema = map[string]any

// maxProblems is how many problems are told at once.
const maxProblems = 8

// Decode checks the arguments, a JSON object, and decodes them, with the defaults of those that are not given. Numbers
// of type integer may be written with a fraction of zero.
func Decode(schema Schema, input string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(input))
	decoder.UseNumber()
	var given any
	if err := decoder.Decode(&given); err != nil {
		return fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	c := &checker{}
	checked := c.value("", schema, given)
	if len(c.problems) > 0 {
		return errors.New(c.tell(schema))
	}
	raw, err := json.Marshal(checked)
	if err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the arguments: %w", err)
	}
	return nil
}

// checker collects what is wrong.
type checker struct{ problems []string }

func (c *checker) report(format string, values ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, values...))
}

// tell says what is wrong, and which arguments there are.
func (c *checker) tell(schema Schema) string {
	problems, more := c.problems, ""
	if len(problems) > maxProblems {
		more = fmt.Sprintf("; and %d more problems", len(problems)-maxProblems)
		problems = problems[:maxProblems]
	}
	return fmt.Sprintf("the call was not made: %s%s. The arguments are: %s. Correct them and call again.",
		strings.Join(problems, "; "), more, strings.Join(Names(schema), ", "))
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
