// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonschema

import (
	"errors"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// CompileOutput compiles the schema of an output, which is bounded in size and has the type object, since the providers
// take no other. It returns the schema as an object, too, as Object does. The error says what is wrong.
func CompileOutput(raw []byte) (*Schema, map[string]any, error) {
	if n := len(raw); n > v1alpha1.MaxOutputSchemaBytes {
		return nil, nil, fmt.Errorf("it has %d bytes, and may have %d", n, v1alpha1.MaxOutputSchemaBytes)
	}
	schema, err := Compile(string(raw))
	if err != nil {
		return nil, nil, err
	}
	object, err := Object(raw)
	if err != nil || object["type"] != "object" { // true and false are schemas, too.
		return nil, nil, errors.New("its type must be object")
	}
	return schema, object, nil
}
