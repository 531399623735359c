// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/transport"
)

// streamedModel marks the calls of its streams, so that their answers are read as streams. It drops parts that only
// keep a connection alive: those are heard where they arrive, by each byte.
type streamedModel struct{ fantasy.LanguageModel }

// Stream implements fantasy.LanguageModel.
func (m streamedModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	stream, err := m.LanguageModel.Stream(transport.WithStream(ctx), call)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for part := range stream {
			if part.Type != fantasy.StreamPartTypeKeepalive && !yield(part) {
				return
			}
		}
	}, nil
}
