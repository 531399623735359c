// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"encoding/json"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/transport"
)

// streamedModel says of its streams that their answers are read as streams. They have neither calls that were cut off,
// nor parts that only keep a connection alive: what came is heard where it arrives, by each byte.
type streamedModel struct{ fantasy.LanguageModel }

// Stream implements fantasy.LanguageModel.
func (m streamedModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	stream, err := m.LanguageModel.Stream(transport.WithStream(ctx), call)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		var calls wholeCalls
		for part := range stream {
			if part.Type != fantasy.StreamPartTypeKeepalive && !calls.pass(part, yield) {
				return
			}
		}
	}, nil
}

// wholeCalls leaves the call out at which a reply was cut off: its arguments may be half of what the model had to say.
// Some protocols have it like any other, since the reply says only behind it why it ends; so that a call is held until
// something follows.
type wholeCalls struct{ held []fantasy.StreamPart }

// pass hands the part on, after what was held before it. It reports whether more is wanted.
func (w *wholeCalls) pass(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	switch part.Type {
	case fantasy.StreamPartTypeToolCall:
		if part.ProviderExecuted { // It is whole, and what follows it is its result, which may take long.
			break
		}
		w.held = append(w.held, part)
		return true
	case fantasy.StreamPartTypeToolInputEnd, fantasy.StreamPartTypeWarnings: // Of a call that comes, or that is held.
		return yield(part)
	case fantasy.StreamPartTypeFinish:
		if held := len(w.held); isCutOff(part.FinishReason) {
			w.held = slices.DeleteFunc(w.held, func(call fantasy.StreamPart) bool { return !isWhole(call.ToolCallInput) })
			if len(w.held) < held {
				part.Warnings = append(part.Warnings, fantasy.CallWarning{Type: fantasy.CallWarningTypeOther,
					Message: "a tool call was left out, because the reply was cut off within it"})
			}
		}
	}
	for _, call := range w.held {
		if !yield(call) {
			return false
		}
	}
	w.held = w.held[:0]
	return yield(part)
}

// isCutOff reports whether a reply ended before the model was done.
func isCutOff(reason fantasy.FinishReason) bool {
	return reason == fantasy.FinishReasonLength || reason == fantasy.FinishReasonContentFilter ||
		reason == fantasy.FinishReasonError
}

// isWhole reports whether arguments are all that there was to come. Of a call that was cut off before the first of them
// fantasy tells an empty object.
func isWhole(arguments string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(arguments), &object) == nil && len(object) > 0
}
