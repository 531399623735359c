// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/check"
)

// says is a committed User message on top of the history, at the version that follows.
func (s *store) says(text string) *v1beta1.ChatMessage {
	m := s.grow()
	n := int64(len(s.messages))
	m.Status = v1beta1.ChatMessageStatus{Parent: m.Spec.Parent, Index: m.Spec.Index, HistoryVersion: n,
		State: v1beta1.MessageCommitted}
	m.Spec = v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: text}
	m.Status.ContentHash = content.Hash(&m.Spec)
	return m
}

// turnOf is the chat at work on the message, with a history of n messages.
func (s *store) turnOf(m *v1beta1.ChatMessage, version int64, n int) *v1beta1.Chat {
	chat := s.chat(0)
	chat.Status.History.Length, chat.Status.History.Head = int64(n), s.messages[n-1].Name
	chat.Status.Turn = &v1beta1.TurnStatus{
		Message: m.Name, Parent: m.Status.Parent, Index: *m.Status.Index, HistoryVersion: version,
	}
	chat.Status.Internal.Turn.ContentHash = content.Hash(&m.Spec)
	return chat
}

func texts(t *testing.T, l *Loader, chat *v1beta1.Chat) (texts []string) {
	t.Helper()
	messages, err := l.Load(t.Context(), chat)
	check.OK(t, err)
	for i := range messages {
		texts = append(texts, messages[i].Spec.Content)
	}
	return texts
}

func edited(m *v1beta1.ChatMessage, text string, version int64) {
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
	check.Equal(t, "the history", []string{"new", "next"}, texts(t, l, s.turnOf(&s.messages[1], 4, 2)))
}

func TestRecreatedMessageIsReadAgain(t *testing.T) {
	s := newStore(t, 0)
	l := s.loader()
	texts(t, l, s.turnOf(s.says("old"), 1, 1))
	s.messages = nil
	edited(s.says("another one"), "another one", 4)
	s.says("next")
	check.Equal(t, "the history", []string{"another one", "next"}, texts(t, l, s.turnOf(&s.messages[1], 5, 2)))
}

func TestUnchangedCommittedMessageIsNotReadAgain(t *testing.T) {
	s := newStore(t, 0)
	l := s.loader()
	chat := s.turnOf(s.says("question"), 1, 1)
	for range 3 { // Three attempts.
		texts(t, l, chat)
	}
	check.Equal(t, "messages read", 1, len(s.gets))
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
		_, err := l.Load(t.Context(), chat)
		_, isEdited := errors.AsType[*EditedError](err)
		check.Equal(t, "broken, edited", []any{false, true}, []any{Broken(err), isEdited})
		s.messages[i].Spec.Content = was
	}
	check.Equal(t, "the history", []string{"first", "second"}, texts(t, l, chat))
}

func TestStaleCachedMessageIsIgnoredUnlessCommitted(t *testing.T) {
	s := newStore(t, 0)
	question := s.says("question")
	s.cached = []v1beta1.ChatMessage{} // It has just been created.
	check.Equal(t, "the history", []string{"question"}, texts(t, s.loader(), s.turnOf(question, 1, 1)))
	s.cached = slices.Clone(s.messages)
	edited(&s.messages[0], "edited", 2)
	check.Equal(t, "the history", []string{"edited"}, texts(t, s.loader(), s.turnOf(&s.messages[0], 2, 1)))
}

// Whoever may delete messages can create a note under the name of one, before the chat has found out.
//
// Security (an author of messages): cannot have a note sent to a model, not even in place of a message that was
// deleted. Also TestThePromptObeysWhatProvidersDemand of internal/generation/prompt; TestANoteTakesNoMessagesPlace of
// test/integration.
func TestNoteIsExcludedFromModelContext(t *testing.T) {
	for name, turn := range map[string]int{"in place of the turn's message": 1, "in place of an earlier one": 0} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, 0)
			s.says("first")
			s.says("second")
			chat := s.turnOf(&s.messages[1], 2, 2)
			s.messages[turn].Spec.Visibility = v1beta1.VisibleToUsers
			_, err := s.loader().Load(t.Context(), chat)
			check.Equal(t, "broken", true, Broken(err))
		})
	}
}

func messagesOf(bytes int) []v1beta1.ChatMessage {
	return []v1beta1.ChatMessage{{Spec: v1beta1.ChatMessageSpec{Content: strings.Repeat("x", bytes)}}}
}

func TestTheChatsThatWereUsedLastStay(t *testing.T) {
	k := newKept(3, 1<<20)
	for i := range 3 {
		k.put(fmt.Sprint(i), messagesOf(1))
	}
	k.get("0")
	k.put("3", messagesOf(1))
	for chat, want := range map[string]bool{"0": true, "1": false, "2": true, "3": true} {
		check.Equal(t, chat, want, k.get(chat) != nil)
	}
}

func TestWhatIsKeptIsBoundedInBytes(t *testing.T) {
	const limit = 100 << 10
	k := newKept(1000, limit)
	for i := range 100 {
		k.put(fmt.Sprint(i), messagesOf(10<<10))
		check.Equal(t, i, true, k.bytes <= limit && k.order.Len() == len(k.entries))
	}
	check.Equal(t, "many are kept", true, k.order.Len() >= 5)
	k.put("99", messagesOf(1))
	check.Equal(t, "one that shrinks frees its bytes", true, k.bytes <= limit-9<<10)
	k.put("huge", messagesOf(2*limit))
	check.Equal(t, "a huge one, chats", []any{true, 1}, []any{k.get("huge") != nil, k.order.Len()})
}

func TestEveryKindOfContentCounts(t *testing.T) {
	long := strings.Repeat("x", 1000)
	prior := []v1beta1.PriorMessage{{Content: long, Files: []v1beta1.PriorFile{{Data: long}},
		ToolCalls: []v1beta1.PriorToolCall{{Input: long}}, ToolResults: []v1beta1.ToolResult{{Output: long}}}}
	check.Equal(t, "an earlier conversation", messageOverhead+4000,
		sizeOf([]v1beta1.ChatMessage{{Spec: v1beta1.ChatMessageSpec{History: prior}}}))
	for name, part := range map[string]v1beta1.MessagePart{
		"text":     {Text: &long},
		"call":     {ToolCall: &v1beta1.ToolCall{Input: long}},
		"result":   {ToolResult: &v1beta1.ToolResult{Output: long}},
		"file":     {File: &v1beta1.MessageFile{Data: long}},
		"metadata": {ProviderMetadata: long},
	} {
		check.Equal(t, name, messageOverhead+1000,
			sizeOf([]v1beta1.ChatMessage{{Spec: v1beta1.ChatMessageSpec{Parts: []v1beta1.MessagePart{part}}}}))
	}
}
