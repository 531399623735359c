// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stream has the events that the gateway streams, as they go over the wire. docs/reference/stream.md says when
// each comes, and what of it may be relied on; the gateway, its clients and that page are held to these types.
package stream

import (
	"encoding/json"
	"fmt"
)

// Names of the events in the stream of a chat.
const (
	EventMessagePart    = "message_part"
	EventMessage        = "message"
	EventNote           = "note"
	EventNoteDeleted    = "note_deleted"
	EventQueueUpdate    = "queue_update"
	EventStatus         = "status"
	EventError          = "error"
	EventRequiresAction = "requires_action"
	EventRetry          = "retry"
	EventPreviewReset   = "preview_reset"
	EventHistoryReset   = "history_reset"
)

// Names of the events in the stream of a namespace.
const (
	EventAdded     = "added"
	EventModified  = "modified"
	EventSynced    = "synced"
	EventListReset = "list_reset"
)

// Names of the events in both. EventDeleted has no fields in the stream of a chat, which ends with it, and Deleted in
// that of a namespace.
const (
	EventDeleted = "deleted"
	EventClosing = "closing"
)

// Event is one event of a stream.
type Event struct {
	// Name of the event, one of the constants above. Clients leave out those that they do not know.
	Name string
	// ID to resume behind, opaque; empty for events that are not part of the story but describe the present.
	ID string
	// Data is a JSON object. Decode reads it.
	Data json.RawMessage
}

// New is an event with data, which is encoded as JSON. The id is empty for one that no one can resume behind.
func New(name, id string, data any) (Event, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("encoding event %s: %w", name, err)
	}
	return Event{Name: name, ID: id, Data: raw}, nil
}

// Decode reads the data of an event as the type that its name says: MessageCommitted for EventMessage, Summary for
// EventAdded and EventModified, Deleted for EventDeleted in the stream of a namespace, nothing for EventSynced,
// EventListReset, EventHistoryReset and EventDeleted of a chat, and the type of the event's name for the others.
// Fields that are unknown are left out.
func Decode[T any](e Event) (*T, error) {
	data := new(T)
	if err := json.Unmarshal(e.Data, data); err != nil {
		return nil, fmt.Errorf("reading event %s: %w", e.Name, err)
	}
	return data, nil
}
