// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Whoever may delete messages can create a note under the name of one, before the chat has found out.
func TestNoteIsExcludedFromModelContext(t *testing.T) {
	for name, turn := range map[string]int{"in place of the turn's message": 1, "in place of an earlier one": 0} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, 0)
			s.says("first")
			s.says("second")
			chat := s.turnOf(&s.messages[1], 2, 2)
			s.messages[turn].Spec.Visibility = v1alpha1.VisibleToPeople
			if messages, err := s.loader().Load(t.Context(), chat); !Broken(err) {
				t.Errorf("the model sees %d messages: %v", len(messages), err)
			}
		})
	}
}

func messagesOf(bytes int) []v1alpha1.ChatMessage {
	return []v1alpha1.ChatMessage{{Spec: v1alpha1.ChatMessageSpec{Content: strings.Repeat("x", bytes)}}}
}

func TestTheChatsThatWereUsedLastStay(t *testing.T) {
	k := newKept(3, 1<<20)
	for i := range 3 {
		k.put(fmt.Sprint(i), messagesOf(1))
	}
	k.get("0")
	k.put("3", messagesOf(1))
	for chat, want := range map[string]bool{"0": true, "1": false, "2": true, "3": true} {
		if got := k.get(chat) != nil; got != want {
			t.Errorf("chat %s is kept: %v, want %v", chat, got, want)
		}
	}
}

func TestWhatIsKeptIsBoundedInBytes(t *testing.T) {
	const limit = 100 << 10
	k := newKept(1000, limit)
	for i := range 100 {
		k.put(fmt.Sprint(i), messagesOf(10<<10))
		if k.bytes > limit {
			t.Fatalf("%d bytes are kept after chat %d", k.bytes, i)
		}
	}
	if n := k.order.Len(); n < 5 || n != len(k.entries) {
		t.Errorf("%d chats are kept in %d entries", n, len(k.entries))
	}
	k.put("99", messagesOf(1)) // one that shrinks gives its room back
	if before := k.bytes; before > limit-9<<10 {
		t.Errorf("%d bytes are kept", before)
	}
	k.put("huge", messagesOf(2*limit)) // the chat in use stays, however large
	if k.get("huge") == nil || k.order.Len() != 1 {
		t.Errorf("%d chats are kept beside one that fills the room", k.order.Len()-1)
	}
}

func TestEveryKindOfContentCounts(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, part := range map[string]v1alpha1.MessagePart{
		"text":     {Text: &long},
		"call":     {ToolCall: &v1alpha1.ToolCall{Input: long}},
		"result":   {ToolResult: &v1alpha1.ToolResult{Output: long}},
		"file":     {File: &v1alpha1.MessageFile{Data: long}},
		"metadata": {ProviderMetadata: long},
	} {
		got := sizeOf([]v1alpha1.ChatMessage{{Spec: v1alpha1.ChatMessageSpec{Parts: []v1alpha1.MessagePart{part}}}})
		if got != messageOverhead+1000 {
			t.Errorf("%s: %d bytes", name, got)
		}
	}
}
