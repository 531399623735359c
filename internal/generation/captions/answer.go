// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"errors"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/finish"
)

// answer is a reply that holds a caption.
type answer struct {
	text string
	// inputs are those of the calls of tools.
	inputs []string
	usage  fantasy.Usage
}

// maxAnswer is how many bytes are kept of a reply: far more than any caption has.
const maxAnswer = 64 << 10

// read reads a reply to its end, for the usage. One that answers nothing, such as a filtered one, is an empty answer
// with its usage.
func read(stream fantasy.StreamResponse) (a answer, err error) {
	var text strings.Builder
	room := maxAnswer
	for part := range stream {
		room -= len(part.Delta) + len(part.ToolCallInput)
		switch part.Type {
		case fantasy.StreamPartTypeTextDelta:
			if room >= 0 {
				text.WriteString(part.Delta)
			}
		case fantasy.StreamPartTypeToolCall:
			if room >= 0 {
				a.inputs = append(a.inputs, part.ToolCallInput)
			}
		case fantasy.StreamPartTypeFinish:
			a.usage = part.Usage
		case fantasy.StreamPartTypeError:
			if _, nothing := errors.AsType[*finish.Error](part.Error); nothing {
				return answer{usage: part.Usage}, nil
			}
			err = part.Error
		}
	}
	a.text = text.String()
	return a, err
}
