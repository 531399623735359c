// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
)

var (
	// ErrMissing means that a committed message no longer exists, or belongs to another chat.
	ErrMissing = errors.New("the message does not exist")
	// ErrUnsettled means that the operator has not recorded yet where in the history the message stands.
	ErrUnsettled = errors.New("the message's place in the history is not known yet")
)

// Committed is a message at its place in a chat's history. It is immutable and shared between streams: an edited
// message gets another one, with another Version.
type Committed struct {
	// Chat is the short identity of the chat.
	Chat string
	// Name of the ChatMessage.
	Name string
	// Parent is the name of the message before it; empty for the first.
	Parent string
	// Version that its commit made.
	Version int64
	// Index in the history, from 0.
	Index int64
	// Attempt that generated it, and Base, the version of the history that the attempt built on; 0 for a message that a
	// person or a client wrote.
	Attempt int32
	Base    int64
	// Follows are the commits of earlier messages, as this message or the generated message behind it records them.
	Follows []v1beta1.CommittedMessage
	// Data is the encoded MessageCommitted.
	Data json.RawMessage
}

// ID is the id of the message's event.
func (c *Committed) ID() string {
	return Position{Chat: c.Chat, Version: c.Version, Number: c.Index + 1}.String()
}

// withoutData is the message for callers that need its place only.
func (c *Committed) withoutData() *Committed {
	place := *c
	place.Data = nil
	return &place
}

// Place is where in a chat's history a message is expected.
type Place struct {
	// Name of the ChatMessage.
	Name string
	// Index in the history, from 0.
	Index int64
	// Version that the message's commit made, if it is known without the message. It may be 0 or too high. A message of
	// this name that was committed here with this version is the expected one.
	Version int64
	// Commit of a message of a person or a client; nil for a generated one, and if it is not known.
	Commit *v1beta1.CommittedMessage
	// Follows are the commits before it that are known.
	Follows []v1beta1.CommittedMessage
}

// PlaceOf is the place of the message with a name, before the message next; nil for the newest.
func PlaceOf(chat *v1beta1.Chat, name string, index int64, next *Committed) Place {
	place := Place{Name: name, Index: index}
	// The status records the commit of the message that began the turn, and of all behind the newest generated message.
	if commit := history.RecordedBy(chat, name); commit != nil && commit.Position == index {
		place.Commit = commit
	}
	if next != nil {
		place.Version, place.Follows = next.Base, next.Follows
	}
	for i := range place.Follows {
		if commit := &place.Follows[i]; commit.Message == name && commit.Position == index {
			place.Commit = commit
		}
	}
	if place.Commit != nil {
		place.Version = place.Commit.HistoryVersion
	}
	return place
}

// Commit is the message at its place. The spec of a generated message has its commit. That of a message of a person or
// a client is in the place, or else in its own status. It fails with ErrMissing for a message of another chat, and with
// ErrUnsettled, also for a message that has left the history.
func Commit(chat *v1beta1.Chat, msg *v1beta1.ChatMessage, place Place) (*Committed, error) {
	if err := belongs(chat, msg); err != nil {
		return nil, err
	}
	c := &Committed{Chat: identity(chat.UID), Name: msg.Name, Index: place.Index, Follows: place.Follows}
	n := history.NodeOf(msg)
	switch g := msg.Spec.Generation; {
	case g != nil:
		c.Attempt, c.Base, c.Follows = g.Attempt, g.HistoryVersion, msg.Spec.Follows
	case place.Commit != nil && !history.Is(place.Commit, msg):
		return nil, fmt.Errorf("%s is another message than the committed one: %w", msg.Name, ErrMissing)
	case place.Commit != nil:
		n.Parent, n.Version = place.Commit.Parent, place.Commit.HistoryVersion
	case msg.Status.State == v1beta1.MessageCommitted:
	default:
		return nil, fmt.Errorf("%s: %w", msg.Name, ErrUnsettled)
	}
	c.Parent, c.Version = n.Parent, n.Version
	data, err := json.Marshal(stream.MessageCommitted{HistoryVersion: c.Version, Index: place.Index,
		Message: messageOf(msg, place.Commit)})
	if err != nil {
		return nil, fmt.Errorf("encoding message %s: %w", msg.Name, err)
	}
	c.Data = data
	return c, nil
}

// belongs fails with ErrMissing for what is no message of the chat.
func belongs(chat *v1beta1.Chat, msg *v1beta1.ChatMessage) error {
	switch uid := history.ChatUID(msg); {
	case msg.Spec.IsNote():
		return fmt.Errorf("%s is a note: %w", msg.Name, ErrMissing)
	case msg.Spec.ChatRef.Name != chat.Name:
		return fmt.Errorf("%s is a message of chat %s: %w", msg.Name, msg.Spec.ChatRef.Name, ErrMissing)
	case uid != string(chat.UID) && (msg.Spec.Generation != nil || uid != ""):
		return fmt.Errorf("%s is a message of an earlier chat %s: %w", msg.Name, chat.Name, ErrMissing)
	}
	return nil
}

func messageOf(msg *v1beta1.ChatMessage, commit *v1beta1.CommittedMessage) stream.Message {
	m := stream.Message{
		Name: msg.Name, UID: string(msg.UID), Role: msg.Spec.Role,
		Visibility: msg.Spec.Visibility, Content: msg.Spec.Content, Parts: slices.Clone(msg.Spec.Parts),
		History:                   msg.Spec.History,
		CreatedAt:                 msg.CreationTimestamp,
		CallsCanceledReasonBefore: msg.Status.CallsCanceledReasonBefore,
		CreatedBy:                 msg.Annotations[v1beta1.AnnotationCreatedBy],
		EditedBy:                  msg.Annotations[v1beta1.AnnotationEditedBy],
	}
	for i := range m.Parts {
		m.Parts[i].ProviderMetadata = ""
	}
	if g := msg.Spec.Generation; g != nil {
		m.Attempt, m.Action, m.Outcome, m.Truncated = g.Attempt, g.Action, g.Outcome, g.Truncated
		m.ReplyOutcome, m.FinishReason = g.ReplyOutcome, g.FinishReason
		m.StartedAt, m.FinishedAt = &g.StartedAt, &g.FinishedAt
		m.Model, m.Usage, m.Cost = g.Model, g.Usage, g.Cost
		m.Context, m.Compaction, m.Warnings = g.Context, g.Compaction, g.Warnings
		m.CallsCanceledReasonBefore, m.Decisions = g.CallsCanceledReasonBefore, g.Decisions
	} else if commit != nil { // Its own status may be older.
		m.CallsCanceledReasonBefore = commit.CallsCanceledReasonBefore
	}
	return m
}
