// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"maps"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
)

// Transcript is what a chat looks like now, as the events of its stream have told so far. The zero value has heard of
// nothing. It belongs to one goroutine.
//
//	for event, err := range chats.Follow(ctx, chat, client.FollowOptions{}) {
//		if err == nil {
//			err = transcript.Apply(event)
//		}
//		...
//	}
//
// Whoever shows what happens, and not what is there, reads the updates first: Updates, and Take for each of them.
type Transcript struct {
	// Outline leaves out what messages, notes and parts say, to save memory. What they are is kept.
	Outline bool

	// Messages are the committed ones in their order. Of a stream that began later the first is not that of the chat.
	Messages []stream.MessageCommitted
	// Notes by the UID of their messages.
	Notes map[string]*stream.Note
	// Live is the attempt under way; nil if nothing of one was streamed.
	Live *Live
	// Queue are the messages that wait, next first.
	Queue []stream.QueuedMessage
	// Status is how the chat stands; nil before the first status. Status.Wait is what the chat waits for.
	Status *stream.Status
	// Action are the calls that wait for people or a client; nil if none do.
	Action *stream.RequiresAction
	// Retry is the attempt that failed and is made again; nil if there is none.
	Retry *stream.Retry
	// Error is why the last turn failed; nil if it did not.
	Error *stream.Error
	// Deleted is true once the chat is gone.
	Deleted bool

	// version and length of the history, of the newest event that has them; version is 0 before the first event that has
	// it.
	version, length int64
	// turns are the messages whose turns have begun. isCurrent is true if the status came after the newest message of a
	// person or a client.
	turns     map[string]bool
	isCurrent bool
	// held are the messages that came since a reset, until its status; retold are the UIDs of the notes since then.
	resetting bool
	held      []*stream.MessageCommitted
	retold    map[string]bool
}

// Update is what an event changes: *stream.MessageCommitted, *stream.MessagePart, *stream.PreviewReset, *stream.Note,
// *stream.NoteDeleted, *stream.QueueUpdate, *stream.Status, *stream.Error, *stream.Retry, *stream.RequiresAction,
// *Reset or Deleted; nil for an event that changes nothing of the chat.
type Update any

// Deleted is the update that ends a chat.
type Deleted struct{}

// updates read the data of events by their names.
var updates = map[string]func(stream.Event) (Update, error){
	stream.EventMessage:        update[stream.MessageCommitted],
	stream.EventMessagePart:    update[stream.MessagePart],
	stream.EventPreviewReset:   update[stream.PreviewReset],
	stream.EventNote:           update[stream.Note],
	stream.EventNoteDeleted:    update[stream.NoteDeleted],
	stream.EventQueueUpdate:    update[stream.QueueUpdate],
	stream.EventStatus:         update[stream.Status],
	stream.EventError:          update[stream.Error],
	stream.EventRetry:          update[stream.Retry],
	stream.EventRequiresAction: update[stream.RequiresAction],
	stream.EventHistoryReset:   func(stream.Event) (Update, error) { return &Reset{More: true}, nil },
	stream.EventDeleted:        func(stream.Event) (Update, error) { return Deleted{}, nil },
}

func update[T any](e stream.Event) (Update, error) {
	data, err := stream.Decode[T](e)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Decode reads the update that an event is. That of EventHistoryReset is a Reset of the whole history.
func Decode(e stream.Event) (Update, error) {
	if read := updates[e.Name]; read != nil {
		return read(e)
	}
	return nil, nil
}

// Apply takes an event.
func (t *Transcript) Apply(e stream.Event) error {
	u, err := Decode(e)
	t.Take(u)
	return err
}

// Take takes an update that Decode or Updates has read.
func (t *Transcript) Take(u Update) {
	switch u := u.(type) {
	case *stream.MessageCommitted:
		t.commit(*u)
	case *stream.MessagePart:
		if !t.Live.Previews(u.HistoryVersion, u.Attempt) {
			t.Live, t.Retry = &Live{HistoryVersion: u.HistoryVersion, Attempt: u.Attempt, Role: u.Role}, nil
		}
		t.Live.add(u, t.Outline)
	case *stream.PreviewReset:
		t.Live = nil
	case *stream.Note:
		t.note(*u)
	case *stream.NoteDeleted:
		delete(t.Notes, u.UID)
	case *stream.QueueUpdate:
		t.Queue = u.Queue
	case *Reset:
		t.reset(u)
	default:
		t.present(u)
	}
}

// present takes what a chat is at the moment.
func (t *Transcript) present(u Update) {
	switch u := u.(type) {
	case *stream.Status:
		t.stand(u)
	case *stream.Error:
		t.Error = u
	case *stream.Retry:
		t.Retry = u
	case *stream.RequiresAction:
		t.Action = u
	case Deleted:
		t.Deleted = true
	}
}

func (t *Transcript) commit(m stream.MessageCommitted) {
	t.version, t.length = max(t.version, m.HistoryVersion), m.Index+1
	if t.Live != nil && m.HistoryVersion > t.Live.HistoryVersion {
		t.Live = nil
	}
	if m.Message.Role == v1alpha1.RoleUser {
		t.begin(m.Message.Name)
	}
	t.isCurrent = t.isCurrent && m.Message.Attempt > 0
	if t.Outline {
		m.Message.Content, m.Message.Parts, m.Message.History = "", nil, nil
	}
	t.Messages = append(t.Messages, m)
}

// begin notes that the turn of a message has begun.
func (t *Transcript) begin(message string) {
	if t.turns == nil {
		t.turns = map[string]bool{}
	}
	t.turns[message] = true
}

func (t *Transcript) note(n stream.Note) {
	if t.Notes == nil {
		t.Notes = map[string]*stream.Note{}
	}
	if t.retold != nil {
		t.retold[n.Message.UID] = true
	}
	if t.Outline {
		n.Message.Content, n.Message.Parts = "", nil
	}
	t.Notes[n.Message.UID] = &n
}

// stand takes a status. It comes before the action, retry and error that are of it, so that those of an older one are
// over. Notes that were not told since a reset are gone.
func (t *Transcript) stand(s *stream.Status) {
	t.Status, t.version, t.length, t.isCurrent = s, s.HistoryVersion, s.Length, true
	if s.Turn != "" {
		t.begin(s.Turn)
	}
	t.expire(s)
	if t.retold != nil {
		maps.DeleteFunc(t.Notes, func(uid string, _ *stream.Note) bool { return !t.retold[uid] })
		t.retold = nil
	}
}

// expire forgets what an older status came with.
func (t *Transcript) expire(s *stream.Status) {
	if t.Action != nil && (t.Action.HistoryVersion != s.HistoryVersion || s.Phase != v1alpha1.ChatRequiresAction) {
		t.Action = nil
	}
	if t.Retry != nil && (t.Retry.HistoryVersion != s.HistoryVersion || t.Retry.Attempt < s.Attempt) {
		t.Retry = nil
	}
	if t.Error != nil && (t.Error.HistoryVersion != s.HistoryVersion || s.Result != v1alpha1.TurnFailed) {
		t.Error = nil
	}
}
