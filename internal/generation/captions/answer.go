// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"errors"

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

// read reads a reply. One that answers nothing, such as a filtered one, is an empty answer with its usage.
func read(stream fantasy.StreamResponse) (a answer, err error) {
	for part := range stream {
		switch part.Type {
		case fantasy.StreamPartTypeTextDelta:
			a.text += part.Delta
		case fantasy.StreamPartTypeToolCall:
			a.inputs = append(a.inputs, part.ToolCallInput)
		case fantasy.StreamPartTypeFinish:
			a.usage = part.Usage
		case fantasy.StreamPartTypeError:
			if _, nothing := errors.AsType[*finish.Error](part.Error); nothing {
				return answer{usage: part.Usage}, nil
			}
			err = part.Error
		}
	}
	return a, err
}
