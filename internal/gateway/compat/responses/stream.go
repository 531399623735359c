// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"encoding/json"
	"fmt"
	"maps"
	"unicode/utf8"

	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// FromStart is the position before all events.
const FromStart int64 = -1

// Stream streams an answer, or the rest of it.
//
// The number of an event is that of the previous one plus one; a delta counts as many as it has bytes. So the numbers
// follow from the content, and not from its division into deltas: every gateway gives the same ones. A client that has
// the event of a number gets the events behind it, and the rest of a delta that it has in part.
type Stream struct {
	answer *wire.Answer
	after  int64
	at     int64
	send   wire.Send
}

// NewStream begins the stream of an answer behind an event's number.
func NewStream(a *wire.Answer, after int64, send wire.Send) *Stream {
	return &Stream{answer: a, after: after, at: FromStart, send: send}
}

// fields of an event without its type and number.
type fields map[string]any

// Begin sends the start of the response.
func (s *Stream) Begin() error {
	s.answer.Begun = true
	for _, name := range []string{"response.created", "response.in_progress"} {
		if err := s.event(name, fields{"response": Of(s.answer)}); err != nil {
			return err
		}
	}
	return nil
}

// Send sends an event of the turn.
func (s *Stream) Send(e turn.Event) error {
	switch e.Kind {
	case turn.BlockStart:
		return s.open(e)
	case turn.BlockDelta:
		return s.grow(e)
	case turn.BlockEnd:
		s.answer.Blocks = append(s.answer.Blocks, *e.Block)
		return s.closeBlock(e)
	}
	s.answer.End = e.End
	name := "response.completed"
	switch e.End.Outcome {
	case turn.Failed:
		name = "response.failed"
	case turn.Interrupted:
		name = "response.incomplete"
	}
	r := Of(s.answer)
	if r.Status == incomplete {
		name = "response.incomplete"
	}
	return s.event(name, fields{"response": r})
}

func (s *Stream) open(e turn.Event) error {
	it := itemOf(s.answer, e.Index, e.Block, inProgress)
	if err := s.event("response.output_item.added", fields{"output_index": e.Index, "item": it}); err != nil {
		return err
	}
	switch e.Block.Kind {
	case turn.Text:
		return s.event("response.content_part.added", fields{"item_id": it.ID, "output_index": e.Index, "content_index": 0,
			"part": outputText("")})
	case turn.Reasoning:
		return s.event("response.reasoning_summary_part.added", fields{"item_id": it.ID, "output_index": e.Index,
			"summary_index": 0, "part": summary("")})
	}
	return nil
}

func (s *Stream) grow(e turn.Event) error {
	id := itemOf(s.answer, e.Index, e.Block, inProgress).ID
	before := s.at
	s.at += int64(len(e.Text))
	if s.at <= s.after {
		return nil
	}
	f := fields{"item_id": id, "output_index": e.Index, "delta": unseen(e.Text, s.after-before)}
	switch e.Block.Kind {
	case turn.Text:
		f["content_index"], f["logprobs"] = 0, []any{}
		return s.write("response.output_text.delta", f)
	case turn.Reasoning:
		f["summary_index"] = 0
		return s.write("response.reasoning_summary_text.delta", f)
	}
	return s.write("response.function_call_arguments.delta", f)
}

// unseen is a text behind its first bytes, from the beginning of a character.
func unseen(text string, seen int64) string {
	if seen <= 0 {
		return text
	}
	for seen > 0 && !utf8.RuneStart(text[seen]) {
		seen--
	}
	return text[seen:]
}

func (s *Stream) closeBlock(e turn.Event) error {
	it := itemOf(s.answer, e.Index, e.Block, completed)
	at := fields{"item_id": it.ID, "output_index": e.Index}
	var err error
	switch e.Block.Kind {
	case turn.Text:
		err = s.events(at, "content_index", "response.output_text.done", fields{"text": e.Block.Text, "logprobs": []any{}},
			"response.content_part.done", fields{"part": outputText(e.Block.Text)})
	case turn.Reasoning:
		err = s.events(at, "summary_index", "response.reasoning_summary_text.done", fields{"text": e.Block.Text},
			"response.reasoning_summary_part.done", fields{"part": summary(e.Block.Text)})
	default:
		at["arguments"], at["name"] = e.Block.Text, e.Block.Name
		err = s.event("response.function_call_arguments.done", at)
	}
	if err != nil {
		return err
	}
	return s.event("response.output_item.done", fields{"output_index": e.Index, "item": it})
}

// events sends the two events that end a text.
func (s *Stream) events(at fields, index, first string, text fields, second string, part fields) error {
	for _, f := range []fields{text, part} {
		maps.Copy(f, at)
		f[index] = 0
	}
	if err := s.event(first, text); err != nil {
		return err
	}
	return s.event(second, part)
}

// Fail ends the stream with an error of the stream. The response can be retrieved.
func (s *Stream) Fail(e *wire.Error) error {
	return s.event("error", fields{"code": e.Code, "message": e.Message, "param": e.Param})
}

// event sends an event unless the client has it.
func (s *Stream) event(name string, f fields) error {
	s.at++
	if s.at <= s.after {
		return nil
	}
	return s.write(name, f)
}

func (s *Stream) write(name string, f fields) error {
	f["type"], f["sequence_number"] = name, s.at
	raw, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding event %s: %w", name, err)
	}
	return s.send(name, raw)
}
