// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// Turn is what a transcript knows of the turn of a User message.
type Turn struct {
	// Committed is true while the message is among the Messages, and Begun once it was, or a status has named its turn.
	Committed, Begun bool
	// Replies are those of the model in the turn, in their order.
	Replies []stream.Message
	// Usage of all steps.
	Usage v1alpha1.TokenUsage
	// Next is what somebody said behind the turn; nil if it is the last one.
	Next *stream.Message
	// Result is how the turn ended, and Held is true while only a person can let it go on. No status says either of a
	// turn that another one follows.
	Result v1alpha1.TurnResult
	Held   bool
	// Ended is true once nothing more comes of the turn.
	Ended bool
}

// Turn is that of the User message of the name; or what is left of a turn behind the Tool message of the name, with
// which a client has brought results.
func (t *Transcript) Turn(message string) (turn Turn) {
	i := slices.IndexFunc(t.Messages, func(m stream.MessageCommitted) bool { return m.Message.Name == message })
	at := i
	turn.Committed, turn.Begun = i >= 0, t.turns[message]
	for i++; turn.Committed && i < len(t.Messages) && turn.Next == nil; i++ {
		turn.add(&t.Messages[i].Message)
	}
	turn.Ended = turn.Next != nil && turn.Next.Role == v1alpha1.RoleUser
	if t.Status != nil && t.isCurrent {
		named := t.Status.Turn == message
		if turn.Committed && turn.Next == nil { // Statuses name the turn by its User message.
			named = named || t.Messages[at].Message.Role == v1alpha1.RoleTool
		}
		turn.stand(named, t.Status)
	}
	return turn
}

// stand takes a status that came behind the newest User message; named is true if it is that of the turn.
func (turn *Turn) stand(named bool, s *stream.Status) {
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
	if m.Role == v1alpha1.RoleAssistant {
		turn.Replies = append(turn.Replies, *m)
	}
}
