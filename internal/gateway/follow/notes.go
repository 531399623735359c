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
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/retry"
)

// NoteRef is a message for people alone, without what it says.
type NoteRef struct {
	// Name of the ChatMessage, its UID, and the generation of its spec: an edit makes another one.
	Name       string
	UID        types.UID
	Generation int64
	// Before is the index of the message of the history before which the note stands.
	Before int64
	// Created is when the note was created.
	Created time.Time
}

// NoteOf is what is known of a message if it is a note that has its place in the chat.
func NoteOf(chat *v1alpha1.Chat, msg *v1alpha1.ChatMessage) (NoteRef, bool) {
	if !msg.Spec.IsNote() || msg.Spec.ChatRef.Name != chat.Name || msg.Status.State != v1alpha1.MessageNoted ||
		msg.Status.ChatUID != string(chat.UID) || msg.Status.Index == nil || !msg.DeletionTimestamp.IsZero() {
		return NoteRef{}, false
	}
	return NoteRef{Name: msg.Name, UID: msg.UID, Generation: msg.Generation, Before: *msg.Status.Index,
		Created: msg.CreationTimestamp.Time}, true
}

// Notes finds the messages of a chat that are for people alone. They are not part of the history.
type Notes interface {
	// Of lists those that have a place in the chat, in any order. Chats tells when that may have changed.
	Of(chat *v1alpha1.Chat) []NoteRef
	// Read reads one, of that generation or a later one, which the caller may not change. It fails with ErrMissing, or
	// with an error that may pass.
	Read(ctx context.Context, chat *v1alpha1.Chat, note NoteRef) (*v1alpha1.ChatMessage, error)
}

// notes tells a client of notes, each at its place, and again when it was edited.
type notes struct {
	source Notes // nil: nobody is told of any
	memory *Memory
	out    outlet
	told   map[types.UID]NoteRef
	// due are those that the client was not told, in the order of the conversation.
	due []NoteRef
}

// begin finds out what the client was not told. It counts all that is there as told for one who wants nothing of what
// was said before it came, and nothing for one whose history is void.
func (n *notes) begin(chat *v1alpha1.Chat, fromNow, void bool) {
	n.due = nil
	if n.source == nil {
		return
	}
	if n.told == nil || void {
		n.told = map[types.UID]NoteRef{}
	}
	for _, note := range n.source.Of(chat) {
		switch {
		case fromNow:
			n.told[note.UID] = note
		case n.told[note.UID].Generation < note.Generation:
			n.due = append(n.due, note)
		}
	}
	slices.SortFunc(n.due, func(a, b NoteRef) int {
		return cmp.Or(cmp.Compare(a.Before, b.Before), a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
}

// tellBefore tells the notes that stand before the message of that index.
func (n *notes) tellBefore(ctx context.Context, chat *v1alpha1.Chat, index int64) error {
	for len(n.due) > 0 && n.due[0].Before <= index {
		if err := n.tell(ctx, chat, n.due[0]); err != nil {
			return err
		}
		n.due = n.due[1:]
	}
	return nil
}

// end tells the other notes, and which are gone.
func (n *notes) end(ctx context.Context, chat *v1alpha1.Chat) error {
	if err := n.tellBefore(ctx, chat, math.MaxInt64); err != nil || len(n.told) == 0 {
		return err
	}
	there := map[types.UID]bool{}
	for _, note := range n.source.Of(chat) {
		there[note.UID] = true
	}
	for uid, note := range n.told {
		if there[uid] {
			continue
		}
		if err := n.out.send(stream.EventNoteDeleted, stream.NoteDeleted{Name: note.Name, UID: string(uid)}); err != nil {
			return err
		}
		delete(n.told, uid)
	}
	return nil
}

func (n *notes) tell(ctx context.Context, chat *v1alpha1.Chat, note NoteRef) error {
	release, err := n.memory.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	msg, err := retry.Do(ctx, retry.Stream, func(ctx context.Context) (*v1alpha1.ChatMessage, error) {
		return n.source.Read(ctx, chat, note)
	}, isGone)
	if isGone(err) {
		return nil // Its deletion is on its way.
	}
	if err != nil {
		return err
	}
	is, ok := NoteOf(chat, msg)
	if !ok {
		return nil
	}
	n.told[is.UID] = is
	return n.out.send(stream.EventNote, stream.Note{Index: is.Before, Generation: is.Generation,
		Message: messageOf(msg, nil)})
}
