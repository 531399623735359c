// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// CompileOutput compiles the schema of an output, which is bounded in size and has the type object, since the providers
// take no other. It returns the schema as an object, too, with its integers as int64. The error says what is wrong.
func CompileOutput(raw []byte) (*Schema, map[string]any, error) {
	if n := len(raw); n > v1alpha1.MaxOutputSchemaBytes {
		return nil, nil, fmt.Errorf("it has %d bytes, and may have %d", n, v1alpha1.MaxOutputSchemaBytes)
	}
	schema, err := Compile(string(raw))
	if err != nil {
		return nil, nil, err
	}
	value, _ := Decode(string(raw))                  // It has been compiled.
	object, _ := withNumbers(value).(map[string]any) // true and false are schemas, too.
	if object["type"] != "object" {
		return nil, nil, errors.New("its type must be object")
	}
	return schema, object, nil
}

// withNumbers is the decoded value with numbers of Go: the libraries of providers write a json.Number as a text.
func withNumbers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = withNumbers(value[name])
		}
	case []any:
		for i := range value {
			value[i] = withNumbers(value[i])
		}
	case json.Number:
		if whole, err := value.Int64(); err == nil {
			return whole
		}
		number, _ := value.Float64() // Decode has checked its range.
		return number
	}
	return value
}
