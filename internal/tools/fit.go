// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// errTooLong is a result that does not fit however much of it is left out.
var errTooLong = errors.New("the result does not fit into what the model can read; ask for less")

// Fit encodes the result that shrunk returns for a number of bytes, or of entries, from most on downwards, as soon as
// it fits into what the model of the chat can read.
func Fit(chat *v1alpha1.Chat, most int, shrunk func(most int) any) (string, error) {
	limit := ResultLimitOf(chat)
	for ; ; most /= 2 {
		text, err := Encode(shrunk(most))
		switch {
		case err != nil:
			return "", err
		case len(text) <= limit:
			return text, nil
		case most == 0:
			return "", errTooLong
		}
	}
}

// FitLines encodes the result that shrunk returns for as many of the lines as fit into what the model of the chat can
// read, and where not even one fits, for so many bytes of that. Halving would throw away up to half of what fits, so
// lines go one by one, from an upper bound on.
func FitLines(chat *v1alpha1.Chat, lines int, shrunk func(lines, bytes int) any) (string, error) {
	for {
		text, err := Encode(shrunk(lines, MaxResultBytes))
		if err != nil {
			return "", err
		}
		over := len(text) - ResultLimitOf(chat)
		switch {
		case over <= 0:
			return text, nil
		case lines <= 1:
			return Fit(chat, MaxResultBytes, func(bytes int) any { return shrunk(lines, bytes) })
		}
		lines = max(1, lines-max(1, over*lines/len(text)))
	}
}

// Encode is compact JSON. Characters that HTML gives a meaning stay as they are: nobody reads it as HTML.
func Encode(result any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(result); err != nil {
		return "", fmt.Errorf("writing the result: %w", err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}
