// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
)

// NoteRef identifies a message for people only, without its content.
type NoteRef struct {
	// Name of the ChatMessage, its UID, and the generation of its spec, which an edit increments.
	Name       string
	UID        types.UID
	Generation int64
	// Before is the index of the message of the history before which the note stands.
	Before int64
	// Created is when the note was created.
	Created time.Time
}

// NoteOf returns the reference of a message, if that is a note with a place in the chat.
func NoteOf(chat *v1beta1.Chat, msg *v1beta1.ChatMessage) (NoteRef, bool) {
	if !msg.Spec.IsNote() || msg.Spec.ChatRef.Name != chat.Name || msg.Status.State != v1beta1.MessageNoted ||
		msg.Status.ChatUID != string(chat.UID) || msg.Status.Index == nil || !msg.DeletionTimestamp.IsZero() {
		return NoteRef{}, false
	}
	return NoteRef{Name: msg.Name, UID: msg.UID, Generation: msg.Generation, Before: *msg.Status.Index,
		Created: msg.CreationTimestamp.Time}, true
}

// Notes finds the messages of a chat that are for people only. They are not part of the history.
type Notes interface {
	// Of lists those that have a place in the chat, in any order. Chats reports when they may have changed.
	Of(chat *v1beta1.Chat) []NoteRef
	// Read reads one, of that generation or a later one, which the caller may not change. It fails with ErrMissing, or
	// with a temporary error.
	Read(ctx context.Context, chat *v1beta1.Chat, note NoteRef) (*v1beta1.ChatMessage, error)
}

// notes sends notes, each at its place, and again when it was edited.
type notes struct {
	source Notes // nil: none are sent
	memory *Memory
	out    outlet
	alive  *keepAlive
	sent   map[types.UID]NoteRef
	// pending are those that the client does not have, in the order of the conversation.
	pending []NoteRef
}

// begin finds the notes that the client does not have. With fromNow, existing notes count as sent. With void, none do.
func (n *notes) begin(chat *v1beta1.Chat, fromNow, void bool) {
	n.pending = nil
	if n.source == nil {
		return
	}
	if n.sent == nil || void {
		n.sent = map[types.UID]NoteRef{}
	}
	for _, note := range n.source.Of(chat) {
		switch {
		case fromNow:
			n.sent[note.UID] = note
		case n.sent[note.UID].Generation < note.Generation:
			n.pending = append(n.pending, note)
		}
	}
	slices.SortFunc(n.pending, func(a, b NoteRef) int {
		return cmp.Or(cmp.Compare(a.Before, b.Before), a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
}

// sendBefore sends the notes that stand before the message of that index.
func (n *notes) sendBefore(ctx context.Context, chat *v1beta1.Chat, index int64) error {
	for len(n.pending) > 0 && n.pending[0].Before <= index {
		if err := n.send(ctx, chat, n.pending[0]); err != nil {
			return err
		}
		n.pending = n.pending[1:]
	}
	return nil
}

// end sends the other notes, and which were deleted.
func (n *notes) end(ctx context.Context, chat *v1beta1.Chat) error {
	if err := n.sendBefore(ctx, chat, math.MaxInt64); err != nil || len(n.sent) == 0 {
		return err
	}
	exists := map[types.UID]bool{}
	for _, note := range n.source.Of(chat) {
		exists[note.UID] = true
	}
	for uid, note := range n.sent {
		if exists[uid] {
			continue
		}
		if err := n.out.send(stream.EventNoteDeleted, stream.NoteDeleted{Name: note.Name, UID: string(uid)}); err != nil {
			return err
		}
		delete(n.sent, uid)
	}
	return nil
}

func (n *notes) send(ctx context.Context, chat *v1beta1.Chat, note NoteRef) error {
	return fetch(ctx, n.memory, n.alive, func(ctx context.Context) (*v1beta1.ChatMessage, error) {
		return n.source.Read(ctx, chat, note)
	}, func(msg *v1beta1.ChatMessage) error {
		is, ok := NoteOf(chat, msg)
		if !ok {
			return nil
		}
		n.sent[is.UID] = is
		return n.out.send(stream.EventNote, stream.Note{Index: is.Before, Generation: is.Generation,
			Message: messageOf(msg, nil)})
	})
}
