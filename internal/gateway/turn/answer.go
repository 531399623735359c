// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
)

// BlockKind is the kind of a block of an answer.
type BlockKind string

const (
	// Text is text for the client.
	Text BlockKind = "Text"
	// Reasoning is the model's reasoning.
	Reasoning BlockKind = "Reasoning"
	// Call is a call that the client runs.
	Call BlockKind = "Call"
)

// Block is a part of an answer: all of one kind between two blocks of other kinds, within a step.
type Block struct {
	Kind BlockKind
	// Text, or the arguments of a call.
	Text string
	// ID and Name of a call.
	ID, Name string
	// Step is the number of the model's reply that the block is part of, from 0.
	Step int

	text *strings.Builder // what Text is a view of, while it grows
}

// add appends to the text, in amortized constant time for each byte.
func (b *Block) add(text string) {
	if b.text == nil {
		b.text = &strings.Builder{}
		b.text.WriteString(b.Text)
	}
	b.text.WriteString(text)
	b.Text = b.text.String()
}

// EventKind is the kind of an event of an answer.
type EventKind string

const (
	// BlockStart begins a block.
	BlockStart EventKind = "BlockStart"
	// BlockDelta appends Text to the open block.
	BlockDelta EventKind = "BlockDelta"
	// BlockEnd ends the block.
	BlockEnd EventKind = "BlockEnd"
	// AnswerEnd ends the answer.
	AnswerEnd EventKind = "AnswerEnd"
	// WaitChange reports that the chat waits for something else.
	WaitChange EventKind = "WaitChange"
)

// Event is an event of an answer. The events of blocks are the same whenever an answer is streamed, except how texts
// are divided into deltas.
type Event struct {
	Kind EventKind
	// Block of the event; its Text is whole at BlockEnd.
	Block *Block
	// Index of the block, from 0.
	Index int
	// Text of BlockDelta.
	Text string
	// End of AnswerEnd.
	End *End
	// Wait is what the chat waits for; nil if it no longer waits.
	Wait *v1beta1.ChatWait
}

// Outcome is how an answer ended.
type Outcome string

const (
	// Completed means that the model finished its answer.
	Completed Outcome = "Completed"
	// RequiresAction means that calls wait for the client.
	RequiresAction Outcome = "RequiresAction"
	// Interrupted means that someone stopped the turn. The answer so far is kept. Without one, End has an error, for
	// protocols that do not know stopped answers.
	Interrupted Outcome = "Interrupted"
	// Failed means that an error ended the turn.
	Failed Outcome = "Failed"
)

// End is how an answer ended, and its usage.
type End struct {
	Outcome Outcome
	// Reply is how the model's last reply ended. Of a turn that limits.maxSteps ended it is
	// v1beta1.ReplyMaxTokensReached.
	Reply v1beta1.ReplyOutcome
	// Usage of all steps.
	Usage v1beta1.TokenUsage
	// Error of a failed turn, or of an interrupted one without an answer; nil for others.
	Error *stream.Error
}

// sync sends the blocks, or parts of them, that the client does not have. If the chat contradicts what was sent, it
// fails with ErrDiverged. With whole, no block grows any further.
func (s *Story) sync(whole bool) error {
	for i := range s.sent {
		if !s.agrees(i, whole) {
			return ErrDiverged
		}
	}
	for i := max(0, len(s.sent)-1); i < len(s.blocks); i++ {
		b := &s.blocks[i]
		if b.Kind == Call && i >= s.committed {
			return nil
		}
		if err := s.sendBlock(i, b); err != nil {
			return err
		}
	}
	if whole {
		return s.closeBlock()
	}
	return nil
}

// agrees reports whether the chat has a block that was sent, or may still get it: a new attempt repeats the answer from
// its beginning.
func (s *Story) agrees(i int, whole bool) bool {
	if i >= len(s.blocks) {
		return !whole
	}
	sent, now := &s.sent[i], &s.blocks[i]
	if !sent.is(now) {
		return false
	}
	mayRepeat := !whole && i == max(s.committed, len(s.blocks)-1)
	mayGrow := !s.closed && i == len(s.sent)-1
	switch {
	case len(now.Text) < len(sent.Text):
		return mayRepeat && strings.HasPrefix(sent.Text, now.Text)
	case len(now.Text) > len(sent.Text):
		return mayGrow && strings.HasPrefix(now.Text, sent.Text)
	}
	return now.Text == sent.Text
}

// is reports whether two blocks are the same, except for their texts.
func (b *Block) is(other *Block) bool { return b.Kind == other.Kind && b.ID == other.ID }

// sendBlock sends what is new of a block.
func (s *Story) sendBlock(i int, b *Block) error {
	if i == len(s.sent) {
		if err := s.closeBlock(); err != nil {
			return err
		}
		opened := Block{Kind: b.Kind, ID: b.ID, Name: b.Name, Step: b.Step}
		s.sent, s.closed = append(s.sent, opened), false
		if err := s.Send(Event{Kind: BlockStart, Block: &s.sent[i], Index: i}); err != nil {
			return err
		}
	}
	sent := &s.sent[i]
	if len(b.Text) <= len(sent.Text) {
		return nil
	}
	added := b.Text[len(sent.Text):]
	if s.bytes += len(added); s.bytes > MaxAnswer {
		return ErrTooLong
	}
	sent.Text = b.Text
	return s.Send(Event{Kind: BlockDelta, Block: sent, Index: i, Text: added})
}

// closeBlock ends the open block, if there is one.
func (s *Story) closeBlock() error {
	if len(s.sent) == 0 || s.closed {
		return nil
	}
	s.closed = true
	i := len(s.sent) - 1
	return s.Send(Event{Kind: BlockEnd, Block: &s.sent[i], Index: i})
}
