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
	// EventMessage is a committed message. Several messages can share a version. An edited message is committed again: it
	// keeps its name and index, and has another version.
	EventMessage = "message"
	// EventNote is a message for people only, which is not part of the history. It comes at its place among the messages,
	// and again when it is edited or after history_reset. Notes have no event ids: identify them by message.uid. A stream
	// with ?from=now has only the notes that come or change.
	EventNote = "note"
	// EventNoteDeleted is the deletion of a note.
	EventNoteDeleted = "note_deleted"
	// EventMessagePart is one part of the running attempt: a preview of its message. It is sent if its attempt is the
	// chat's current one and its number follows the last one sent.
	EventMessagePart = "message_part"
	// EventQueueUpdate is the queue. The text of a message is read once: one that is edited while it waits keeps its
	// preview.
	EventQueueUpdate = "queue_update"
	// EventStatus is the status of the chat. The first one of a stream with ?from=now has an id, to resume behind.
	EventStatus = "status"
	// EventError is why the last turn failed. It comes once per version and stream.
	EventError = "error"
	// EventRetry is a failed attempt of which the next one is pending. When that begins, the parts of the failed one are
	// void.
	EventRetry = "retry"
	// EventRequiresAction is a turn that waits for a client's results or for people's decisions. It comes once per version
	// and stream, and again after each decision about a call.
	EventRequiresAction = "requires_action"
	// EventPreviewReset is an attempt whose parts are void. A message that the attempt yielded voids them too, without
	// this event.
	EventPreviewReset = "preview_reset"
	// EventHistoryReset means that the client's messages and parts are no longer the beginning of this chat's history: a
	// message was edited or deleted, or it is another chat of the same name. The whole history follows, which may be
	// empty, and then the present. It has no fields.
	EventHistoryReset = "history_reset"
)

// Names of the events in the stream of a namespace.
const (
	// EventAdded is a chat that the client's list lacks. An unchanged chat may come again: handle it like modified.
	EventAdded = "added"
	// EventModified is a changed chat. Changes in quick succession are merged.
	EventModified = "modified"
	// EventSynced means that the list is whole. It has no fields.
	EventSynced = "synced"
	// EventListReset means that the client's list is no longer valid. Drop it; the list follows as from the start. It has
	// no fields.
	EventListReset = "list_reset"
)

// Names of the events in both.
const (
	// EventDeleted is the deletion of a chat. In the stream of the chat it has no fields and is the last event; a client
	// that resumes after that receives it too, if it may still follow a chat of the name. In the stream of a namespace it
	// has the data Deleted, and the chat may be one that was not in the list.
	EventDeleted = "deleted"
	// EventClosing is the end of the stream; the chat continues. A client that takes more than 10 seconds to accept an
	// event is disconnected without this event. Resume with the last event id.
	EventClosing = "closing"
)

// Event is one event of a stream.
type Event struct {
	// Name of the event, one of the constants above. Clients leave out those that they do not know.
	Name string
	// ID to resume behind, opaque; empty for events that are not part of the story but describe the present. The first
	// status of a stream with ?from=now has one.
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
