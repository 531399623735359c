// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/netguard/retry"
)

// transcript is a chat as it is at a moment: what a stream from one of its messages on tells, with the notes at their
// places.
type transcript struct {
	chat   *v1alpha1.Chat
	events []stream.Event
}

// transcriptTries is how often a chat is read that is changed meanwhile.
const transcriptTries = 3

// transcript reads a chat with its newest messages; all for 0. It is read again if it is changed meanwhile.
func (s *session) transcript(ctx context.Context, name string, last int) (*transcript, error) {
	var failed error
	for range transcriptTries {
		chat, err := s.objects.chat(ctx, name)
		if err != nil {
			return nil, err
		}
		t, err := s.objects.read(ctx, chat, last)
		if err == nil {
			return t, nil
		}
		if failed = err; !errors.Is(err, errChanged) && !errors.Is(err, follow.ErrUnsettled) {
			break
		}
		if err := retry.Sleep(ctx, reconnectAfter); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("reading the messages of chat %s: %w", name, failed)
}

var errChanged = errors.New("the conversation is changed while it is read, try again")

// read reads the newest messages of a chat as it was read; all for 0.
func (o objects) read(ctx context.Context, chat *v1alpha1.Chat, last int) (*transcript, error) {
	notes, err := o.messages().List(ctx, metav1.ListOptions{
		FieldSelector: fmt.Sprintf("spec.chatRef.name=%s,spec.visibility=%s", chat.Name, v1alpha1.VisibleToPeople)})
	if err != nil {
		return nil, err
	}
	source, err := o.fewOrListed(ctx, chat, last)
	if err != nil {
		return nil, err
	}
	t, messages, wanted := &transcript{chat: chat}, int64(0), chat.Status.History.Length
	if last > 0 {
		wanted = min(wanted, int64(last))
	}
	follower := follow.Follower{Chats: moment{chat}, Messages: source, Notes: listedNotes{notes.Items},
		Send: func(e stream.Event) error {
			if e.Name == stream.EventMessage {
				messages++
			}
			t.events = append(t.events, e)
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
func (o objects) fewOrListed(ctx context.Context, chat *v1alpha1.Chat, last int) (follow.Messages, error) {
	one, length := apiServer{o.client}, int(chat.Status.History.Length)
	if last == 0 {
		last = length
	}
	if min(last, length) <= length/messagePage+1 {
		return one, nil
	}
	l := listedMessages{apiServer: one, byName: map[string]*v1alpha1.ChatMessage{}}
	return l, eachPage(ctx, ofChat(chat.Name), o.messages().List, func(page *v1alpha1.ChatMessageList) {
		for i := range page.Items {
			l.byName[page.Items[i].Name] = &page.Items[i]
		}
	})
}

// listedMessages are messages that were listed, and for what came later the API server. It implements follow.Messages.
type listedMessages struct {
	apiServer

	byName map[string]*v1alpha1.ChatMessage
}

// Get implements follow.Messages.
func (l listedMessages) Get(ctx context.Context, chat *v1alpha1.Chat, place follow.Place) (*follow.Committed, error) {
	if m := l.byName[place.Name]; m != nil {
		return follow.Commit(chat, m, place.Index)
	}
	return l.apiServer.Get(ctx, chat, place)
}

// last leaves out the messages before the last few, with their notes.
func (t *transcript) last(messages int) error {
	first := t.chat.Status.History.Length - int64(messages)
	var failed error
	t.events = slices.DeleteFunc(t.events, func(e stream.Event) bool {
		switch e.Name {
		case stream.EventMessage:
			m, err := stream.Decode[stream.MessageCommitted](e)
			failed = errors.Join(failed, err)
			return err == nil && m.Index < first
		case stream.EventNote:
			n, err := stream.Decode[stream.Note](e)
			failed = errors.Join(failed, err)
			return err == nil && n.Index < first
		}
		return false
	})
	return failed
}

// moment is a chat that does not change. It implements follow.Chats.
type moment struct{ chat *v1alpha1.Chat }

// Latest implements follow.Chats.
func (m moment) Latest() *v1alpha1.Chat { return m.chat }

// Changed implements follow.Chats.
func (moment) Changed() <-chan struct{} { return nil }

// listedNotes are notes that were listed. It implements follow.Notes.
type listedNotes struct {
	notes []v1alpha1.ChatMessage
}

// Of implements follow.Notes.
func (l listedNotes) Of(chat *v1alpha1.Chat) (refs []follow.NoteRef) {
	for i := range l.notes {
		if note, ok := follow.NoteOf(chat, &l.notes[i]); ok {
			refs = append(refs, note)
		}
	}
	return refs
}

// Read implements follow.Notes.
func (l listedNotes) Read(_ context.Context, _ *v1alpha1.Chat, note follow.NoteRef) (*v1alpha1.ChatMessage, error) {
	for i := range l.notes {
		if l.notes[i].UID == note.UID {
			return &l.notes[i], nil
		}
	}
	return nil, follow.ErrMissing
}
