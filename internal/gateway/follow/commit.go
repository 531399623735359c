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

// Committed is a message at its place in a chat's history. It never changes, and is shared between streams: a message that
// is edited gets another one, with another Version.
type Committed struct {
	// Name of the ChatMessage.
	Name string
	// Parent is the name of the message before it; empty for the first.
	Parent string
	// Version that its commit made.
	Version int64
	// Index in the history, from 0.
	Index int64
	// Attempt that yielded it, and Base, the version of the history that the attempt built on; 0 for a message that a
	// person or a client wrote.
	Attempt int32
	Base    int64
	// Data is the encoded MessageCommitted.
	Data json.RawMessage
}

// ID is the id of the message's event.
func (c *Committed) ID() string {
	return Position{Version: c.Version, Number: c.Index + 1}.String()
}

// Place is where in a chat's history a message is looked for.
type Place struct {
	// Name of the ChatMessage.
	Name string
	// Index in the history, from 0.
	Index int64
	// Version that the message's commit made, as far as that can be told without the message: 0 if it cannot, and it may be
	// too high. A message that was committed with this version here, with this name, is the one that is meant.
	Version int64
}

// placeOf is the place of the message with a name, before one that is known; nil for the newest.
func placeOf(chat *v1alpha1.Chat, name string, index int64, next *Committed) Place {
	place := Place{Name: name, Index: index}
	if _, version, ok := recorded(chat, name, index); ok {
		place.Version = version
	} else if next != nil {
		place.Version = next.Base
	}
	return place
}

// recorded is the place of a message as the chat's own status says it: it does of the message that began the turn and of
// the newest results of a client, before the messages do themselves.
func recorded(chat *v1alpha1.Chat, name string, index int64) (parent string, version int64, ok bool) {
	turn := chat.Status.Turn
	if turn == nil {
		return "", 0, false
	}
	if turn.Message == name && turn.Index == index {
		return turn.Parent, turn.HistoryVersion, true
	}
	if r := turn.Results; r != nil && r.Message == name && r.Index == index {
		return r.Parent, r.HistoryVersion, true
	}
	return "", 0, false
}

// Commit finds a message's place: a generated message says it in its spec; one of a person or a client in its status, or
// before that is written in the status of the chat. It fails with ErrMissing for a message of another chat, and with
// ErrUnsettled, also for a message that has left the history.
func Commit(chat *v1alpha1.Chat, msg *v1alpha1.ChatMessage, index int64) (*Committed, error) {
	c := &Committed{Name: msg.Name, Index: index}
	if msg.Spec.ChatRef.Name != chat.Name {
		return nil, fmt.Errorf("%s is a message of chat %s: %w", msg.Name, msg.Spec.ChatRef.Name, ErrMissing)
	}
	parent, version, placed := recorded(chat, msg.Name, index)
	switch g := msg.Spec.Generation; {
	case g != nil && g.ChatUID != string(chat.UID), msg.Status.ChatUID != "" && msg.Status.ChatUID != string(chat.UID):
		return nil, fmt.Errorf("%s is a message of an earlier chat %s: %w", msg.Name, chat.Name, ErrMissing)
	case g != nil:
		c.Parent, c.Version, c.Attempt, c.Base = msg.Spec.Parent, g.HistoryVersion+1, g.Attempt, g.HistoryVersion
	case placed:
		c.Parent, c.Version = parent, version
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
