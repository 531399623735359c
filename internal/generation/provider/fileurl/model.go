// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"context"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/fault"
)

// urlModel hands files to a provider by their URLs: the protocol writes the URL of a file part into the request. A
// provider that refuses one of the files, or cannot fetch it, is asked again without it: like any other file that
// cannot be had, it is no error, and the model reads why it is not there.
type urlModel struct {
	fantasy.LanguageModel
	about   fault.Subject
	refused refusals
}

// Stream implements fantasy.LanguageModel.
func (m *urlModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	h := m.handover(call.Prompt)
	if h == nil {
		return m.LanguageModel.Stream(ctx, call)
	}
	stream, err := m.LanguageModel.Stream(ctx, h.request(&call))
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for {
			refusal := m.forward(stream, h, yield)
			if refusal == nil {
				return
			}
			h.giveUp(*refusal)
			if stream, err = m.LanguageModel.Stream(ctx, h.request(&call)); err != nil {
				yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: err})
				return
			}
		}
	}, nil
}

// forward hands the stream on. If it consists of an error about a file that was handed over, it returns what the
// provider said instead.
func (m *urlModel) forward(stream fantasy.StreamResponse, h *handover,
	yield func(fantasy.StreamPart) bool) (refusal *string) {
	begun := false
	for part := range stream {
		switch {
		case refusal != nil:
			continue // The end is waited for, so that the connection is given back.
		case begun, part.Type == fantasy.StreamPartTypeWarnings:
		case part.Type == fantasy.StreamPartTypeError:
			if refusal = m.refusal(part.Error, h); refusal != nil {
				continue
			}
		default:
			begun = true
			m.refused.add(h.givenUp())
			if !h.warn(yield) {
				return nil
			}
		}
		if !yield(part) {
			return nil
		}
	}
	return refusal
}

// refusal is what the provider said if an error can be about a file that was handed over; else nil.
func (m *urlModel) refusal(err error, h *handover) *string {
	if !h.handsAny() {
		return nil
	}
	if said, refused := fault.FileRefused(err, m.about); refused {
		return &said
	}
	return nil
}
