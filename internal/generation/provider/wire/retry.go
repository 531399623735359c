// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"charm.land/fantasy"
)

// Retry streams a call. If the stream begins with an error for which next returns a call, it streams that one instead,
// as often as next returns one. Warnings do not count as a beginning.
func Retry(ctx context.Context, model fantasy.LanguageModel, call fantasy.Call,
	next func(error) *fantasy.Call) (fantasy.StreamResponse, error) {
	stream, err := model.Stream(ctx, call)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for again := forward(stream, next, yield); again != nil; again = forward(stream, next, yield) {
			if stream, err = model.Stream(ctx, *again); err != nil {
				yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: err})
				return
			}
		}
	}, nil
}

// forward passes the stream on, and returns the call that is to be made instead, if any.
func forward(stream fantasy.StreamResponse, next func(error) *fantasy.Call,
	yield func(fantasy.StreamPart) bool) *fantasy.Call {
	started := false
	for part := range stream {
		if part.Error != nil && !started {
			if again := next(part.Error); again != nil {
				return again
			}
		}
		started = started || part.Type != fantasy.StreamPartTypeWarnings
		if !yield(part) {
			return nil
		}
	}
	return nil
}

// OnAccepted calls accepted once the provider accepts the call, and puts the warnings that it returns before the reply.
func OnAccepted(stream fantasy.StreamResponse, accepted func() []fantasy.CallWarning) fantasy.StreamResponse {
	return func(yield func(fantasy.StreamPart) bool) {
		started := false
		for part := range stream {
			if !started && part.Type != fantasy.StreamPartTypeWarnings && part.Type != fantasy.StreamPartTypeError {
				started = true
				warnings := accepted()
				if len(warnings) > 0 && !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeWarnings, Warnings: warnings}) {
					return
				}
			}
			if !yield(part) {
				return
			}
		}
	}
}
