// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/netguard/retry"
)

// Snapshot is a chat as it is at a moment: what a stream from one of its messages on tells, with the notes at their
// places. It implements follow.Chats and follow.Notes.
type Snapshot struct {
	Chat   *v1alpha1.Chat
	Events []stream.Event

	notes []v1alpha1.ChatMessage
}

// snapshotTries is how often a chat is read that is changed meanwhile.
const snapshotTries = 3

// Snapshot reads a chat with its newest messages; all for 0. It is read again if it is changed meanwhile.
func (o Objects) Snapshot(ctx context.Context, name string, last int) (*Snapshot, error) {
	var failed error
	for range snapshotTries {
		chat, err := o.Chat(ctx, name)
		if err != nil {
			return nil, err
		}
		t, err := o.read(ctx, chat, last)
		if err == nil {
			return t, nil
		}
		if failed = err; !errors.Is(err, errChanged) && !errors.Is(err, follow.ErrUnsettled) {
			break
		}
		if err := retry.Sleep(ctx, ReconnectAfter); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("reading the messages of chat %s: %w", name, failed)
}

var errChanged = errors.New("the conversation is changed while it is read, try again")

// read reads the newest messages of a chat as it was read; all for 0.
func (o Objects) read(ctx context.Context, chat *v1alpha1.Chat, last int) (*Snapshot, error) {
	notes, err := o.Messages().List(ctx, metav1.ListOptions{
		FieldSelector: fmt.Sprintf("spec.chatRef.name=%s,spec.visibility=%s", chat.Name, v1alpha1.VisibleToPeople)})
	if err != nil {
		return nil, err
	}
	source, err := o.fewOrListed(ctx, chat, last)
	if err != nil {
		return nil, err
	}
	t, messages, wanted := &Snapshot{Chat: chat, notes: notes.Items}, int64(0), chat.Status.History.Length
	if last > 0 {
		wanted = min(wanted, int64(last))
	}
	follower := follow.Follower{Chats: t, Messages: source, Notes: t,
		Send: func(e stream.Event) error {
			if e.Name == stream.EventMessage {
				messages++
			}
			t.Events = append(t.Events, e)
			return nil
		}}
	if err := follower.Once(ctx, int64(last)); err != nil {
		return nil, err
	}
	if messages != wanted {
		return nil, errChanged
	}
	return t, nil
}

// fewOrListed is where the newest messages of a chat are read: one by one where that takes fewer requests than a list.
func (o Objects) fewOrListed(ctx context.Context, chat *v1alpha1.Chat, last int) (follow.Messages, error) {
	one, length := APIServer{o.Client}, int(chat.Status.History.Length)
	if last == 0 {
		last = length
	}
	if min(last, length) <= length/MessagePage+1 {
		return one, nil
	}
	l := listedMessages{APIServer: one, byName: map[string]*v1alpha1.ChatMessage{}}
	return l, Each(ctx, MessagesOf(chat.Name), o.Messages().List,
		func(m *v1alpha1.ChatMessage) { l.byName[m.Name] = m })
}

// listedMessages are messages that were listed, and for what came later the API server. It implements follow.Messages.
type listedMessages struct {
	APIServer

	byName map[string]*v1alpha1.ChatMessage
}

// Get implements follow.Messages.
func (l listedMessages) Get(ctx context.Context, chat *v1alpha1.Chat, place follow.Place) (*follow.Committed, error) {
	if m := l.byName[place.Name]; m != nil {
		return follow.Commit(chat, m, place)
	}
	return l.APIServer.Get(ctx, chat, place)
}

// Last leaves out the messages before the last few, with their notes, and returns how many those are; none for 0.
func (t *Snapshot) Last(messages int) (before int, failed error) {
	first := t.Chat.Status.History.Length - int64(messages)
	if messages == 0 || first <= 0 {
		return 0, nil
	}
	t.Events = slices.DeleteFunc(t.Events, func(e stream.Event) bool {
		u, err := client.Decode(e)
		failed = errors.Join(failed, err)
		switch u := u.(type) {
		case *stream.MessageCommitted:
			return u.Index < first
		case *stream.Note:
			return u.Index < first
		}
		return false
	})
	return int(first), failed
}

// Latest implements follow.Chats.
func (t *Snapshot) Latest() *v1alpha1.Chat { return t.Chat }

// Changed implements follow.Chats: it never does.
func (*Snapshot) Changed() <-chan struct{} { return nil }

// Of implements follow.Notes.
func (t *Snapshot) Of(chat *v1alpha1.Chat) (refs []follow.NoteRef) {
	for i := range t.notes {
		if note, ok := follow.NoteOf(chat, &t.notes[i]); ok {
			refs = append(refs, note)
		}
	}
	return refs
}

// Read implements follow.Notes.
func (t *Snapshot) Read(_ context.Context, _ *v1alpha1.Chat, note follow.NoteRef) (*v1alpha1.ChatMessage, error) {
	for i := range t.notes {
		if t.notes[i].UID == note.UID {
			return &t.notes[i], nil
		}
	}
	return nil, follow.ErrMissing
}
