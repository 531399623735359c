// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"maps"
	"slices"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
)

// Transcript is the state of a chat, built from the events of its stream. The zero value is the state before the first
// event. It belongs to one goroutine.
//
//	for event, err := range chats.Follow(ctx, chat, client.FollowOptions{}) {
//		if err == nil {
//			err = transcript.Apply(event)
//		}
//		...
//	}
//
// A program that shows changes, and not the state, calls Updates, and Take for each of them.
type Transcript struct {
	// Outline omits the texts of messages, notes and parts, to save memory.
	Outline bool

	// Messages are the committed ones in their order, from the first that the stream had.
	Messages []stream.MessageCommitted
	// Notes by the UID of their messages.
	Notes map[string]*stream.Note
	// Live is the attempt under way; nil before its first part.
	Live *Live
	// Queue holds the messages that wait, next first.
	Queue []stream.QueuedMessage
	// Status is the newest one; nil before the first. Status.Wait is what the chat waits for.
	Status *stream.Status
	// Action holds the calls that wait for people or a client; nil if none do.
	Action *stream.RequiresAction
	// Retry is the attempt that failed and is made again; nil if there is none.
	Retry *stream.Retry
	// Error is why the last turn failed; nil if it did not.
	Error *stream.Error
	// Deleted is true once the chat is gone.
	Deleted bool

	// version and length of the history in the newest event that has them.
	version, length int64
	// turns holds the messages whose turns have begun. isCurrent is true if the status is newer than the newest message of
	// a person or a client.
	turns     map[string]bool
	isCurrent bool
	// A reset repeats the history, up to a status. Until then repeated holds its messages, and repeatedNotes the UIDs of
	// its notes.
	resetting     bool
	repeated      []*stream.MessageCommitted
	repeatedNotes map[string]bool
}

// Update is the change that an event makes: *stream.MessageCommitted, *stream.MessagePart, *stream.PreviewReset,
// *stream.Note, *stream.NoteDeleted, *stream.QueueUpdate, *stream.Status, *stream.Error, *stream.Retry,
// *stream.RequiresAction, *Reset or Deleted; nil for an event that changes nothing of the chat.
type Update any

// Deleted is the update that ends a chat.
type Deleted struct{}

var decoders = map[string]func(stream.Event) (Update, error){
	stream.EventMessage:        decode[stream.MessageCommitted],
	stream.EventMessagePart:    decode[stream.MessagePart],
	stream.EventPreviewReset:   decode[stream.PreviewReset],
	stream.EventNote:           decode[stream.Note],
	stream.EventNoteDeleted:    decode[stream.NoteDeleted],
	stream.EventQueueUpdate:    decode[stream.QueueUpdate],
	stream.EventStatus:         decode[stream.Status],
	stream.EventError:          decode[stream.Error],
	stream.EventRetry:          decode[stream.Retry],
	stream.EventRequiresAction: decode[stream.RequiresAction],
	stream.EventHistoryReset:   func(stream.Event) (Update, error) { return &Reset{More: true}, nil },
	stream.EventDeleted:        func(stream.Event) (Update, error) { return Deleted{}, nil },
}

func decode[T any](e stream.Event) (Update, error) {
	data, err := stream.Decode[T](e)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Decode reads the update that an event is. That of EventHistoryReset is a Reset of the whole history.
func Decode(e stream.Event) (Update, error) {
	if read := decoders[e.Name]; read != nil {
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
		t.addNote(*u)
	case *stream.NoteDeleted:
		delete(t.Notes, u.UID)
	case *stream.QueueUpdate:
		t.Queue = u.Queue
	case *Reset:
		t.truncate(u)
	default:
		t.takeCurrent(u)
	}
}

func (t *Transcript) takeCurrent(u Update) {
	switch u := u.(type) {
	case *stream.Status:
		t.setStatus(u)
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
	if m.Message.Role == v1beta1.RoleUser {
		t.markBegun(m.Message.Name)
	}
	t.isCurrent = t.isCurrent && m.Message.Attempt > 0
	if t.Outline {
		m.Message.Content, m.Message.Parts, m.Message.History = "", nil, nil
	}
	t.Messages = append(t.Messages, m)
}

func (t *Transcript) markBegun(message string) {
	if t.turns == nil {
		t.turns = map[string]bool{}
	}
	t.turns[message] = true
}

func (t *Transcript) addNote(n stream.Note) {
	if t.Notes == nil {
		t.Notes = map[string]*stream.Note{}
	}
	if t.repeatedNotes != nil {
		t.repeatedNotes[n.Message.UID] = true
	}
	if t.Outline {
		n.Message.Content, n.Message.Parts = "", nil
	}
	t.Notes[n.Message.UID] = &n
}

// setStatus takes a status. The action, retry and error of a status follow it, so those of an older one are void. Notes
// that a reset has not repeated are deleted.
func (t *Transcript) setStatus(s *stream.Status) {
	t.Status, t.version, t.length, t.isCurrent = s, s.HistoryVersion, s.Length, true
	if s.Turn != "" {
		t.markBegun(s.Turn)
	}
	t.expire(s)
	if t.repeatedNotes != nil {
		maps.DeleteFunc(t.Notes, func(uid string, _ *stream.Note) bool { return !t.repeatedNotes[uid] })
		t.repeatedNotes = nil
	}
}

func (t *Transcript) expire(s *stream.Status) {
	if t.Action != nil && (t.Action.HistoryVersion != s.HistoryVersion || s.Phase != v1beta1.ChatRequiresAction) {
		t.Action = nil
	}
	if t.Retry != nil && (t.Retry.HistoryVersion != s.HistoryVersion || t.Retry.Attempt < s.Attempt) {
		t.Retry = nil
	}
	if t.Error != nil && (t.Error.HistoryVersion != s.HistoryVersion || s.Result != v1beta1.TurnFailed) {
		t.Error = nil
	}
}

// Reset is the part of the history that has changed: messages were edited or deleted.
type Reset struct {
	// Other is true when another chat has taken the name.
	Other bool
	// From is the index of the first message that has changed, and Length that of the history before.
	From, Length int64
	// More is true when messages follow from there.
	More bool
}

// Updates reads the changes that an event makes, for programs that show changes. The whole history follows an
// EventHistoryReset. Updates holds it back until the status that ends it, and then returns a Reset, if anything has
// changed, and the messages that are new. Take each update before the next event.
func (t *Transcript) Updates(e stream.Event) ([]Update, error) {
	u, err := Decode(e)
	if err != nil || u == nil {
		return nil, err
	}
	switch u := u.(type) {
	case *Reset:
		t.resetting, t.repeated, t.repeatedNotes = true, nil, map[string]bool{}
		return nil, nil
	case *stream.MessageCommitted:
		if t.resetting {
			t.repeated = append(t.repeated, u)
			return nil, nil
		}
	case *stream.Status:
		if t.resetting {
			return append(t.changes(u), u), nil
		}
	}
	return []Update{u}, nil
}

// changes returns what a reset has changed, and the messages that are new. A chat's version never falls: a lower one is
// of another chat. Messages that were committed before the reset were shown, or came before the stream.
func (t *Transcript) changes(s *stream.Status) (updates []Update) {
	r := &Reset{Other: s.HistoryVersion < t.version, From: s.Length, Length: t.length}
	for _, m := range t.repeated {
		if r.Other || m.HistoryVersion > t.version {
			r.From, r.More = min(r.From, m.Index), true
			updates = append(updates, m)
		}
	}
	t.resetting, t.repeated, t.Live = false, nil, nil // The parts are repeated, too.
	if r.Other || r.From < r.Length {
		updates = slices.Insert(updates, 0, Update(r))
	}
	return updates
}

// truncate drops what a reset makes void. The notes are repeated.
func (t *Transcript) truncate(r *Reset) {
	from := r.From
	if r.Other {
		from = 0
	}
	t.Messages = slices.DeleteFunc(t.Messages, func(m stream.MessageCommitted) bool { return m.Index >= from })
	t.Live, t.Action, t.Retry, t.Error, t.isCurrent = nil, nil, nil, nil, false
	if t.repeatedNotes == nil {
		t.repeatedNotes = map[string]bool{}
	}
}
