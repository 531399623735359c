// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonschema

import (
	"bytes"
	"encoding/json"
)

// Object decodes a schema that is an object. Its numbers are those of AsWritten.
func Object(raw []byte) (object map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	WithNumbers(object, AsWritten)
	return object, nil
}

// WithNumbers changes the numbers in a decoded JSON value.
func WithNumbers(value any, change func(json.Number) any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = WithNumbers(value[name], change)
		}
	case []any:
		for i := range value {
			value[i] = WithNumbers(value[i], change)
		}
	case json.Number:
		return change(value)
	}
	return value
}

// AsWritten is a number that every encoder writes as it is. A float64 rounds large integers, and the encoders of some
// providers' libraries write a json.Number as a text.
func AsWritten(number json.Number) any { return json.RawMessage(number) }
