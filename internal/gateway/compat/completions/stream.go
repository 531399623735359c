// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package completions

import (
	"encoding/json"
	"fmt"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// chunk is a piece of an answer.
type chunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []chunkChoice `json:"choices"`
	Usage   *Usage        `json:"usage,omitempty"`
	Parley  *extension    `json:"parley,omitempty"`
}

// extension has the fields that the protocol does not have.
type extension struct {
	Wait *v1beta1.ChatWait `json:"wait"`
}

type chunkChoice struct {
	Index        int     `json:"index"`
	Delta        delta   `json:"delta"`
	FinishReason *string `json:"finish_reason"`
}

type delta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	Refusal          *string    `json:"refusal,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
}

// Stream streams an answer.
type Stream struct {
	answer *wire.Answer
	send   wire.Send
	texts  map[turn.BlockKind]int // blocks of a kind so far
	calls  int
}

// NewStream begins the stream of an answer, whose events have no names.
func NewStream(a *wire.Answer, send wire.Send) *Stream {
	return &Stream{answer: a, send: send, texts: map[turn.BlockKind]int{}}
}

// Begin sends the role of the answer.
func (s *Stream) Begin() error {
	return s.delta(delta{Role: "assistant", Content: new("")}, nil)
}

// Send sends an event of the turn.
func (s *Stream) Send(e turn.Event) error {
	switch e.Kind {
	case turn.BlockStart:
		return s.open(e.Block)
	case turn.BlockDelta:
		return s.grow(e.Block.Kind, e.Text)
	case turn.BlockEnd:
		s.answer.Blocks = append(s.answer.Blocks, *e.Block)
	case turn.AnswerEnd:
		return s.end(e.End)
	}
	return nil
}

func (s *Stream) open(b *turn.Block) error {
	if b.Kind == turn.Call {
		index := s.calls
		s.calls++
		return s.delta(delta{ToolCalls: []ToolCall{{Index: &index, ID: turn.CallID(b.ID, s.answer.Chat), Type: "function",
			Function: Function{Name: b.Name}}}}, nil)
	}
	s.texts[b.Kind]++
	if s.texts[b.Kind] > 1 {
		return s.grow(b.Kind, between)
	}
	return nil
}

func (s *Stream) grow(kind turn.BlockKind, text string) error {
	switch kind {
	case turn.Text:
		return s.delta(delta{Content: &text}, nil)
	case turn.Reasoning:
		return s.delta(delta{ReasoningContent: text}, nil)
	}
	index := s.calls - 1
	return s.delta(delta{ToolCalls: []ToolCall{{Index: &index, Function: Function{Arguments: text}}}}, nil)
}

func (s *Stream) end(end *turn.End) error {
	if end.Error != nil {
		return s.Fail(wire.Failure(end.Error))
	}
	last := delta{}
	if end.Reply == v1beta1.ReplyRefused { // Its text has been sent as content.
		last.Refusal = new(textOf(s.answer.Blocks, turn.Text))
	}
	if err := s.delta(last, new(finish(end))); err != nil {
		return err
	}
	if s.answer.WithUsage {
		last := s.chunk()
		last.Choices, last.Usage = []chunkChoice{}, usageOf(end.Usage)
		if err := s.write(last); err != nil {
			return err
		}
	}
	return s.send("", []byte("[DONE]"))
}

// Wait sends what the chat waits for, in a chunk that adds nothing to the answer.
func (s *Stream) Wait(w *v1beta1.ChatWait) error {
	c := s.chunk()
	c.Choices, c.Parley = []chunkChoice{{}}, &extension{w}
	return s.write(c)
}

// Fail ends the stream with an error.
func (s *Stream) Fail(e *wire.Error) error {
	return s.write(map[string]any{"error": e})
}

func (s *Stream) delta(d delta, finished *string) error {
	c := s.chunk()
	c.Choices = []chunkChoice{{Delta: d, FinishReason: finished}}
	return s.write(c)
}

func (s *Stream) chunk() chunk {
	return chunk{ID: idPrefix + s.answer.Message, Object: "chat.completion.chunk", Created: s.answer.Created.Unix(),
		Model: s.answer.Model}
}

func (s *Stream) write(data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encoding a chunk: %w", err)
	}
	return s.send("", raw)
}
