// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"

	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/internal/tools"
)

// lenientText is a text, or another JSON value as its JSON. Null is empty.
type lenientText string

// UnmarshalJSON implements json.Unmarshaler. It takes all values.
func (t *lenientText) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*t = lenientText(text)
		return nil
	}
	*t = lenientText(again(raw))
	return nil
}

// lenientData are bytes in base64, also without padding, in the alphabet for URLs, or in a data: URI.
type lenientData struct {
	bytes   []byte
	invalid bool
}

// unusual are the characters of other forms of base64, and what stands for them in the one that is decoded.
var unusual = strings.NewReplacer("-", "+", "_", "/", "=", "", " ", "", "\t", "", "\r", "", "\n", "")

// UnmarshalJSON implements json.Unmarshaler. It takes all values.
func (d *lenientData) UnmarshalJSON(raw []byte) error {
	var text string
	err := json.Unmarshal(raw, &text)
	if header, data, found := strings.Cut(text, ";base64,"); found && strings.HasPrefix(header, "data:") {
		text = data
	}
	if err == nil {
		d.bytes, err = base64.RawStdEncoding.DecodeString(unusual.Replace(text))
	}
	d.invalid = err != nil
	return nil
}

// decode decodes a single JSON value. Numbers stay as they are written.
func decode(raw []byte) (value any, err error) {
	if !json.Valid(raw) {
		return nil, errors.New("it is not a JSON value")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// again is JSON written again: without escapes, in which secrets would not be found.
func again(raw []byte) string {
	value, err := decode(raw)
	if err != nil {
		return ""
	}
	text, _ := tools.Encode(value) // It was decoded from JSON.
	return text
}

// same reports whether two decoded JSON values are equal. It changes how numbers in them are written.
func same(a, b any) bool {
	return reflect.DeepEqual(jsonschema.WithNumbers(a, byValue), jsonschema.WithNumbers(b, byValue))
}

// maxNumber and maxExponent are how many characters of a number are compared by its value: a short text can be a very
// large number.
const maxNumber, maxExponent = 64, 4

// byValue is the same for all that is written for a number.
func byValue(number json.Number) any {
	_, exponent, _ := strings.Cut(strings.ToLower(number.String()), "e")
	exact, ok := new(big.Rat), len(number) <= maxNumber && len(exponent) <= maxExponent
	if ok {
		exact, ok = exact.SetString(number.String())
	}
	if !ok {
		return number
	}
	return json.Number(exact.RatString())
}
