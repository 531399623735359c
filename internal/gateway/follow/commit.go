// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

var (
	// ErrMissing means that a committed message does not exist any more, or belongs to another chat.
	ErrMissing = errors.New("the message does not exist")
	// ErrUnsettled means that the operator has not said yet where in the history the message stands.
	ErrUnsettled = errors.New("the message's place in the history is not known yet")
)

// Committed is a message at its place in a chat's history. It never changes, and is shared between streams.
type Committed struct {
	// Name of the ChatMessage.
	Name string
	// Parent is the name of the message before it; empty for the first.
	Parent string
	// Version that its commit made.
	Version int64
	// Index in the history, from 0.
	Index int64
	// Attempt that yielded it, on the version before; 0 for a User message.
	Attempt int32
	// Data is the encoded MessageCommitted.
	Data json.RawMessage
}

// ID is the id of the message's event.
func (c *Committed) ID() string {
	return Position{Version: c.Version, Number: c.Index + 1}.String()
}

// Commit finds a message's place: a generated message says it in its spec; a User message in its status, or before that
// is written in the status of the chat whose turn it began. It fails with ErrMissing for a message of another chat, and
// with ErrUnsettled.
func Commit(chat *v1alpha1.Chat, msg *v1alpha1.ChatMessage, index int64) (*Committed, error) {
	c := &Committed{Name: msg.Name, Index: index}
	if msg.Spec.ChatRef.Name != chat.Name {
		return nil, fmt.Errorf("%s is a message of chat %s: %w", msg.Name, msg.Spec.ChatRef.Name, ErrMissing)
	}
	switch g, turn := msg.Spec.Generation, chat.Status.Turn; {
	case g != nil && g.ChatUID != string(chat.UID), msg.Status.ChatUID != "" && msg.Status.ChatUID != string(chat.UID):
		return nil, fmt.Errorf("%s is a message of an earlier chat %s: %w", msg.Name, chat.Name, ErrMissing)
	case g != nil:
		c.Parent, c.Version, c.Attempt = msg.Spec.Parent, g.HistoryVersion+1, g.Attempt
	case turn != nil && turn.Message == msg.Name:
		c.Parent, c.Version = turn.Parent, turn.HistoryVersion
	case msg.Status.State == v1alpha1.MessageCommitted:
		c.Parent, c.Version = msg.Status.Parent, msg.Status.HistoryVersion
	default:
		return nil, fmt.Errorf("%s: %w", msg.Name, ErrUnsettled)
	}
	data, err := json.Marshal(MessageCommitted{HistoryVersion: c.Version, Index: index, Message: messageOf(msg)})
	if err != nil {
		return nil, fmt.Errorf("encode message %s: %w", msg.Name, err)
	}
	c.Data = data
	return c, nil
}

func messageOf(msg *v1alpha1.ChatMessage) Message {
	m := Message{
		Name: msg.Name, UID: string(msg.UID), Role: msg.Spec.Role,
		Content: msg.Spec.Content, Parts: slices.Clone(msg.Spec.Parts), CreatedAt: msg.CreationTimestamp,
	}
	for i := range m.Parts {
		m.Parts[i].ProviderMetadata = ""
	}
	if g := msg.Spec.Generation; g != nil {
		m.Attempt, m.Outcome, m.FinishReason, m.Truncated = g.Attempt, g.Outcome, g.FinishReason, g.Truncated
		m.Model, m.Usage = g.Model, g.Usage
	}
	return m
}
