// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"slices"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/content"
)

// says is a committed User message on top of the history, at the version that follows.
func (s *store) says(text string) *v1alpha1.ChatMessage {
	m := s.grow()
	n := int64(len(s.messages))
	m.Status = v1alpha1.ChatMessageStatus{Parent: m.Spec.Parent, Index: m.Spec.Index, HistoryVersion: n,
		State: v1alpha1.MessageCommitted}
	m.Spec = v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser, Content: text}
	m.Status.ContentHash = content.Hash(&m.Spec)
	return m
}

// turnOf is the chat at work on the message, with a history of n messages.
func (s *store) turnOf(m *v1alpha1.ChatMessage, version int64, n int) *v1alpha1.Chat {
	chat := s.chat(0)
	chat.Status.History.Length, chat.Status.History.Head = int64(n), s.messages[n-1].Name
	chat.Status.Turn = &v1alpha1.TurnStatus{
		Message: m.Name, Parent: m.Status.Parent, Index: *m.Status.Index, HistoryVersion: version,
	}
	chat.Status.Internal.Turn.ContentHash = content.Hash(&m.Spec)
	return chat
}

func texts(t *testing.T, l *Loader, chat *v1alpha1.Chat) (texts []string) {
	t.Helper()
	messages, err := l.Load(t.Context(), chat)
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		texts = append(texts, messages[i].Spec.Content)
	}
	return texts
}

func edited(m *v1alpha1.ChatMessage, text string, version int64) {
	m.Spec.Content = text
	m.Status.ContentHash, m.Status.HistoryVersion = content.Hash(&m.Spec), version
}

func TestEditFromUnseenEarlierTurnIsRead(t *testing.T) {
	s := newStore(t, 0)
	l := s.loader()
	question := s.says("old")
	texts(t, l, s.turnOf(question, 1, 1))
	edited(&s.messages[0], "new", 3)
	s.says("next") // The turn of the edit has ended without a reply.
	if got := texts(t, l, s.turnOf(&s.messages[1], 4, 2)); !slices.Equal(got, []string{"new", "next"}) {
		t.Errorf("the history is %q", got)
	}
}

func TestRecreatedMessageIsReadAgain(t *testing.T) {
	s := newStore(t, 0)
	l := s.loader()
	texts(t, l, s.turnOf(s.says("old"), 1, 1))
	s.messages = nil
	edited(s.says("another one"), "another one", 4)
	s.says("next")
	if got := texts(t, l, s.turnOf(&s.messages[1], 5, 2)); !slices.Equal(got, []string{"another one", "next"}) {
		t.Errorf("the history is %q", got)
	}
}

func TestUnchangedCommittedMessageIsNotReadAgain(t *testing.T) {
	s := newStore(t, 0)
	l := s.loader()
	chat := s.turnOf(s.says("question"), 1, 1)
	for range 3 { // Three attempts.
		texts(t, l, chat)
	}
	if len(s.gets) != 1 {
		t.Errorf("%v were read", s.gets)
	}
}

// The edit may be taken back before the chat sees it.
func TestUncommittedEditIsNeitherUsedNorCached(t *testing.T) {
	s := newStore(t, 0)
	l := s.loader()
	s.says("first")
	s.says("second")
	chat := s.turnOf(&s.messages[1], 2, 2)
	for i := range s.messages {
		was := s.messages[i].Spec.Content
		s.messages[i].Spec.Content = "something else"
		if _, err := l.Load(t.Context(), chat); Broken(err) || !isEdited(err) {
			t.Errorf("message %d was edited, and loading said %v", i, err)
		}
		s.messages[i].Spec.Content = was
	}
	if got := texts(t, l, chat); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("the history is %q", got)
	}
}

func TestStaleCachedMessageIsIgnoredUnlessCommitted(t *testing.T) {
	s := newStore(t, 0)
	question := s.says("question")
	s.cached = []v1alpha1.ChatMessage{} // It has just been created.
	if got := texts(t, s.loader(), s.turnOf(question, 1, 1)); !slices.Equal(got, []string{"question"}) {
		t.Errorf("of a message that is not cached yet, the history is %q", got)
	}
	s.cached = slices.Clone(s.messages)
	edited(&s.messages[0], "edited", 2)
	if got := texts(t, s.loader(), s.turnOf(&s.messages[0], 2, 1)); !slices.Equal(got, []string{"edited"}) {
		t.Errorf("of a message that is cached as it was before an edit, the history is %q", got)
	}
}

func isEdited(err error) bool {
	_, ok := errors.AsType[*EditedError](err)
	return ok
}
