// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finish determines how the reply of a model ended: it maps the finish reason of each protocol to an outcome,
// and turns a reply without content into an error.
//
// Invariants: a reply whose finish reason is not in the table is never complete; a tool call that the model did not
// finish is never passed on; the provider's own word is kept.
package finish

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
)

// metadataKey is the key of a Last in the metadata of a finish part.
const metadataKey = "parley"

// Last is the end of a reply as the provider reports it.
type Last struct {
	// Reason is its finish reason; empty if it gave none.
	Reason string `json:"reason,omitempty"`
	// Refused is whether it marks the reply as a refusal, Blocked whether the model did not read the prompt.
	Refused bool `json:"refused,omitempty"`
	Blocked bool `json:"blocked,omitempty"`
	// ResponseID is the provider's id of the reply, RequestID that of the HTTP request; empty: it gave none.
	ResponseID string `json:"responseID,omitempty"`
	RequestID  string `json:"requestID,omitempty"`
	// Outcome is how the reply ended. Model sets it.
	Outcome v1beta1.ReplyOutcome `json:"outcome,omitempty"`
}

// Option is a value among fantasy's options and metadata.
type Option[T any] struct{ Value T }

// Options implements fantasy.ProviderOptionsData.
func (*Option[T]) Options() {}

// MarshalJSON implements fantasy.ProviderOptionsData.
func (o *Option[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.Value) }

// UnmarshalJSON implements fantasy.ProviderOptionsData.
func (o *Option[T]) UnmarshalJSON(raw []byte) error { return json.Unmarshal(raw, &o.Value) }

// Mark returns the finish part with the end of the reply.
func Mark(part fantasy.StreamPart, last Last) fantasy.StreamPart {
	part.ProviderMetadata = fantasy.ProviderMetadata{metadataKey: &Option[Last]{last}}
	return part
}

// LastOf is the end of the reply, from the finish part; zero if the part is not marked.
func LastOf(part *fantasy.StreamPart) Last {
	if last, ok := part.ProviderMetadata[metadataKey].(*Option[Last]); ok {
		return last.Value
	}
	return Last{}
}

// Error is a reply that answers nothing. The part of the stream that carries it has the usage of the call.
type Error struct {
	// Outcome is v1beta1.ReplyFiltered, ReplyEmpty or ReplyFailed.
	Outcome v1beta1.ReplyOutcome
	// Reason is the provider's word; empty if it gave none.
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("the reply ended as %s with finish reason %q", e.Outcome, e.Reason)
}

type model struct {
	fantasy.LanguageModel
	protocol Protocol
}

// Model returns the model, whose streams end with the outcome of the reply (see LastOf), or with an Error if it answers
// nothing. Incomplete calls are omitted. Its inner model has to Mark the finish part.
func Model(inner fantasy.LanguageModel, protocol Protocol) fantasy.LanguageModel {
	return model{inner, protocol}
}

func (m model) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	stream, err := m.LanguageModel.Stream(ctx, call)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		r := reply{protocol: m.protocol}
		for part := range stream {
			if !r.pass(part, yield) {
				return
			}
		}
	}, nil
}

// reply is the state of a stream.
type reply struct {
	protocol Protocol
	content  Content
	// held are calls behind which nothing has come yet. Some protocols send a call that was cut off like any other, since
	// the finish reason comes behind it.
	held []fantasy.StreamPart
}

// pass passes on the part, after the calls that were held before it. It reports whether to continue.
func (r *reply) pass(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	switch part.Type {
	case fantasy.StreamPartTypeToolCall:
		if part.ProviderExecuted { // It is whole, and what follows it is its result, which may take long.
			break
		}
		r.held = append(r.held, part)
		return true
	case fantasy.StreamPartTypeToolInputEnd, fantasy.StreamPartTypeWarnings: // Of a call that comes, or that is held.
		return yield(part)
	case fantasy.StreamPartTypeTextDelta:
		r.content.Text = r.content.Text || strings.TrimSpace(part.Delta) != ""
	case fantasy.StreamPartTypeFinish:
		return r.finish(part, yield)
	}
	return r.release(yield) && yield(part)
}

// release passes on the held calls.
func (r *reply) release(yield func(fantasy.StreamPart) bool) bool {
	for _, call := range r.held {
		r.content.Calls = true
		if !yield(call) {
			return false
		}
	}
	r.held = nil
	return true
}

// finish ends the stream with the outcome of the reply.
func (r *reply) finish(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	last := LastOf(&part)
	r.content.Refused, r.content.Blocked = last.Refused, last.Blocked
	if isCutOff(OutcomeOf(r.protocol, last.Reason)) {
		r.keepWhole()
	}
	if !r.release(yield) {
		return false
	}
	last.Outcome = Of(r.protocol, last.Reason, r.content)
	switch last.Outcome {
	case v1beta1.ReplyFiltered, v1beta1.ReplyEmpty, v1beta1.ReplyFailed:
		return yield(fantasy.StreamPart{
			Type: fantasy.StreamPartTypeError, Error: &Error{last.Outcome, last.Reason}, Usage: part.Usage,
		})
	}
	return yield(Mark(part, last))
}

// isCutOff reports whether a reply can end within a tool call.
func isCutOff(outcome v1beta1.ReplyOutcome) bool {
	switch outcome {
	case v1beta1.ReplyComplete, v1beta1.ReplyToolCalls, v1beta1.ReplyPaused:
		return false
	}
	return true
}

// keepWhole drops held calls whose arguments may be incomplete. A call that was cut off before its first argument has
// an empty object.
func (r *reply) keepWhole() {
	whole := r.held[:0]
	for _, call := range r.held {
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(call.ToolCallInput), &object) == nil && len(object) > 0 {
			whole = append(whole, call)
		}
	}
	r.held = whole
}
