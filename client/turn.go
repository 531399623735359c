// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
)

// Turn is the turn of a User message, from what the transcript has.
type Turn struct {
	// Committed is true while the message is among the Messages, and Begun once it was, or a status has named its turn.
	Committed, Begun bool
	// Replies of the model, in their order.
	Replies []stream.Message
	// Usage of all steps.
	Usage v1beta1.TokenUsage
	// Next is the message of a person or client behind the turn; nil if it is the last one.
	Next *stream.Message
	// Result is how the turn ended, and Held is true while only a person can make it continue. Both are unset for a turn
	// that another one follows.
	Result v1beta1.TurnResult
	Held   bool
	// Ended is true once the turn is complete.
	Ended bool
}

// Turn returns the turn of a User message, or the rest of a turn behind a Tool message with results of a client.
func (t *Transcript) Turn(message string) (turn Turn) {
	i := slices.IndexFunc(t.Messages, func(m stream.MessageCommitted) bool { return m.Message.Name == message })
	at := i
	turn.Committed, turn.Begun = i >= 0, t.turns[message]
	for i++; turn.Committed && i < len(t.Messages) && turn.Next == nil; i++ {
		turn.add(&t.Messages[i].Message)
	}
	turn.Ended = turn.Next != nil && turn.Next.Role == v1beta1.RoleUser
	if t.Status != nil && t.isCurrent {
		named := t.Status.Turn == message
		if turn.Committed && turn.Next == nil { // Statuses name the turn by its User message.
			named = named || t.Messages[at].Message.Role == v1beta1.RoleTool
		}
		turn.setStatus(named, t.Status)
	}
	return turn
}

// setStatus takes a status that is newer than the newest User message; named is true if it is that of the turn.
func (turn *Turn) setStatus(named bool, s *stream.Status) {
	if !named {
		turn.Ended = turn.Ended || turn.Begun
		return
	}
	turn.Result, turn.Held = s.Result, s.Result == "" && s.Ready == metav1.ConditionFalse
	turn.Ended = turn.Ended || s.Ready == metav1.ConditionTrue || s.Ready == metav1.ConditionFalse
}

// add takes a message behind the one that began the turn.
func (turn *Turn) add(m *stream.Message) {
	if m.Attempt == 0 {
		turn.Next = m
		return
	}
	if m.Usage != nil {
		turn.Usage = turn.Usage.Add(*m.Usage)
	}
	if m.Role == v1beta1.RoleAssistant {
		turn.Replies = append(turn.Replies, *m)
	}
}

// Live is the attempt under way: a preview of the message that it will yield.
type Live struct {
	// HistoryVersion and Attempt say which attempt it is. The message that it yields has the next version.
	HistoryVersion int64
	Attempt        int32
	// Role of the message to be.
	Role string
	// Seq is the number of the last part.
	Seq int64
	// Parts so far. Pieces of the same type and id are one part, of at most MaxEvent bytes.
	Parts []LivePart
}

// LivePart is a part of a message that is being generated.
type LivePart struct {
	parts.Part

	text *strings.Builder // what Text is a view of, while it grows
}

// Previews reports whether the parts are of that attempt. nil is of none.
func (l *Live) Previews(version int64, attempt int32) bool {
	return l != nil && l.HistoryVersion == version && l.Attempt == attempt
}

// Has reports whether a part of the type has come, with that id if it is not empty.
func (l *Live) Has(kind parts.Type, id string) bool {
	return l != nil && slices.ContainsFunc(l.Parts, func(p LivePart) bool {
		return p.Type == kind && (id == "" || p.ID == id)
	})
}

// Text is the text of the reply so far.
func (l *Live) Text() string {
	if l == nil {
		return ""
	}
	var b strings.Builder
	for _, p := range l.Parts {
		if p.Type == parts.Text {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// add takes a part. An outline has no texts.
func (l *Live) add(p *stream.MessagePart, outline bool) {
	l.Seq = p.Seq
	i := slices.IndexFunc(l.Parts, func(have LivePart) bool { return have.Type == p.Part.Type && have.ID == p.Part.ID })
	switch {
	case i < 0 && outline:
		l.Parts = append(l.Parts, LivePart{Part: parts.Part{Type: p.Part.Type, ID: p.Part.ID, Name: p.Part.Name}})
	case i < 0:
		l.Parts = append(l.Parts, LivePart{Part: p.Part})
	case !outline && len(l.Parts[i].Text) < MaxEvent:
		l.Parts[i].grow(p.Part.Text)
	}
}

// grow makes the text longer, in amortized constant time for each byte.
func (p *LivePart) grow(text string) {
	if p.text == nil {
		p.text = &strings.Builder{}
		p.text.WriteString(p.Text)
	}
	p.text.WriteString(text)
	p.Text = p.text.String()
}
