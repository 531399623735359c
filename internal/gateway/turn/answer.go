// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// BlockKind is what a block of an answer is.
type BlockKind string

const (
	// Text is what the model says.
	Text BlockKind = "Text"
	// Reasoning is what it thinks.
	Reasoning BlockKind = "Reasoning"
	// Call is a call that a client is to run.
	Call BlockKind = "Call"
)

// Block is a piece of an answer: what stands between two of another kind, within a step.
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

// add makes the text longer, in amortized constant time for each byte.
func (b *Block) add(text string) {
	if b.text == nil {
		b.text = &strings.Builder{}
		b.text.WriteString(b.Text)
	}
	b.text.WriteString(text)
	b.Text = b.text.String()
}

// EventKind is what happens to an answer.
type EventKind string

const (
	// Opened begins a block.
	Opened EventKind = "Opened"
	// Grown adds Text to the block that is open.
	Grown EventKind = "Grown"
	// Closed ends the block.
	Closed EventKind = "Closed"
	// Ended ends the answer.
	Ended EventKind = "Ended"
	// Waiting says what the chat waits for, each time that this changes.
	Waiting EventKind = "Waiting"
)

// Event is something that happens to an answer. The Opened, Grown and Closed events of an answer are the same whenever
// it is told, but for the pieces in which texts grow.
type Event struct {
	Kind EventKind
	// Block of Opened, Grown and Closed; its Text is whole when it is Closed.
	Block *Block
	// Index of the block, from 0.
	Index int
	// Text of Grown.
	Text string
	// End of Ended.
	End *End
	// Wait is what the chat waits for; nil if it no longer waits.
	Wait *v1alpha1.ChatWait
}

// Outcome is how an answer ended.
type Outcome string

const (
	// Completed means that the model had nothing left to say.
	Completed Outcome = "Completed"
	// RequiresAction means that calls wait for the client.
	RequiresAction Outcome = "RequiresAction"
	// Interrupted means that somebody stopped the turn. What was said is kept.
	Interrupted Outcome = "Interrupted"
	// Failed means that an error ended the turn.
	Failed Outcome = "Failed"
)

// End is how an answer ended, and what it took.
type End struct {
	Outcome Outcome
	// Reply is how the model's last reply ended. Of a turn that limits.maxSteps ended it is v1alpha1.ReplyCutByLength.
	Reply v1alpha1.ReplyOutcome
	// Usage of all steps.
	Usage v1alpha1.TokenUsage
	// Error of a failed turn.
	Error *stream.Error
}
