// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"slices"

	"charm.land/fantasy"
)

// RetryWithoutReasoning streams a call, and once more without the reasoning of former replies that the provider has
// signed or sealed, if the first error is that it rejects the history.
func RetryWithoutReasoning(ctx context.Context, model fantasy.LanguageModel, call fantasy.Call,
	rejected func(error) bool) (fantasy.StreamResponse, error) {
	rest, found := withoutReasoning(call.Prompt)
	if !found {
		return model.Stream(ctx, call)
	}
	return Retry(ctx, model, call, func(err error) *fantasy.Call {
		if rest == nil || !rejected(err) {
			return nil
		}
		again := call
		again.Prompt, rest = rest, nil
		return &again
	})
}

// withoutReasoning is a prompt without the reasoning that would go back; false: it has none.
func withoutReasoning(prompt fantasy.Prompt) (rest fantasy.Prompt, found bool) {
	sealed := func(part fantasy.MessagePart) bool {
		if part.GetType() != fantasy.ContentTypeReasoning {
			return false
		}
		state := StateOf(part)
		return state.Item != nil || state.Signature != ""
	}
	rest = slices.Clone(prompt)
	for i := range rest {
		if slices.ContainsFunc(rest[i].Content, sealed) {
			rest[i].Content, found = slices.DeleteFunc(slices.Clone(rest[i].Content), sealed), true
		}
	}
	return rest, found
}

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
