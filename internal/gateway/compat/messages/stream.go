// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"encoding/json"
	"fmt"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// Stream streams an answer.
type Stream struct {
	answer *wire.Answer
	send   wire.Send
}

// NewStream begins the stream of an answer.
func NewStream(a *wire.Answer, send wire.Send) *Stream {
	return &Stream{a, send}
}

// fields of an event without its type.
type fields map[string]any

// Begin sends the start of the answer. The usage is known at its end.
func (s *Stream) Begin() error { return s.event("message_start", fields{"message": begun(s.answer)}) }

// Send sends an event of the turn.
func (s *Stream) Send(e turn.Event) error {
	switch e.Kind {
	case turn.BlockStart:
		return s.event("content_block_start", fields{"index": e.Index, "content_block": blockOf(s.answer, e.Block, "")})
	case turn.BlockDelta:
		return s.event("content_block_delta", fields{"index": e.Index, "delta": deltaOf(e.Block.Kind, e.Text)})
	case turn.BlockEnd:
		return s.event("content_block_stop", fields{"index": e.Index})
	}
	if e.End.Error != nil {
		return s.Fail(wire.Failure(e.End.Error))
	}
	err := s.event("message_delta", fields{"usage": usageOf(e.End.Usage),
		"delta": map[string]any{"stop_reason": stopReason(e.End), "stop_sequence": nil}})
	if err != nil {
		return err
	}
	return s.event("message_stop", fields{})
}

// deltaOf is a piece of a block.
func deltaOf(kind turn.BlockKind, text string) map[string]string {
	switch kind {
	case turn.Reasoning:
		return map[string]string{"type": "thinking_delta", "thinking": text}
	case turn.Call:
		return map[string]string{"type": "input_json_delta", "partial_json": text}
	}
	return map[string]string{"type": "text_delta", "text": text}
}

// Wait sends what the chat waits for.
func (s *Stream) Wait(w *v1beta1.ChatWait) error {
	return s.event("ping", fields{"parley": map[string]any{"wait": w}})
}

// Fail ends the stream with an error.
func (s *Stream) Fail(e *wire.Error) error { return s.event("error", fields{"error": errorOf(e)}) }

func (s *Stream) event(name string, f fields) error {
	f["type"] = name
	raw, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding event %s: %w", name, err)
	}
	return s.send(name, raw)
}
