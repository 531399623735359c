// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

// gen is a generated message of chat c.
func gen(name, parent string, index, version int64, follows ...v1beta1.CommittedMessage) *v1beta1.ChatMessage {
	m := chattest.In("ns", chattest.Generated(name, v1beta1.RoleAssistant))
	m.UID = types.UID(name)
	m.Spec.ChatRef.Name, m.Spec.Parent, m.Spec.Index, m.Spec.Follows = "c", parent, new(index), follows
	m.Spec.Generation.ChatUID, m.Spec.Generation.HistoryVersion = "uid", version
	m.Spec.Generation.Attempt = 1
	m.Spec.Generation.Action = v1beta1.ActionGenerateAssistant
	return m
}

// user is a message of a person.
func user(name string) *v1beta1.ChatMessage {
	m := chattest.In("ns", chattest.User("c", name, chattest.Defaulted))
	m.UID, m.Generation = types.UID(name+"-uid"), 1
	return m
}

// commitAt is the commit of a message of user.
func commitAt(m *v1beta1.ChatMessage, parent string, position, version int64) v1beta1.CommittedMessage {
	return v1beta1.CommittedMessage{Message: m.Name, UID: m.Name + "-uid", Parent: parent, Position: position,
		HistoryVersion: version, ContentHash: content.Of(m)}
}

func TestCutReplyStaysUntilTheChatRemovesIt(t *testing.T) {
	u, v := user("u"), user("v")
	chat := chattest.In("ns", chattest.Chat("c", chattest.UID("uid")))
	chat.Status.History = v1beta1.HistoryStatus{Version: 5, Head: "u", Length: 1}
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "u", HistoryVersion: 5}
	chat.Status.Internal.Tail = []v1beta1.CommittedMessage{commitAt(u, "", 0, 5)}
	chat.Status.Internal.Superseded = &v1beta1.SupersededRange{FromIndex: 1, BeforeVersion: 5}
	s, r := begin(t, chat, u, v, gen("c-1-1", "u", 1, 1, commitAt(u, "", 0, 1)),
		gen("c-3-1", "v", 3, 3, commitAt(v, "c-1-1", 2, 3)))
	if _, err := r.Reconcile(t.Context(), request("c-3-1")); err != nil {
		t.Fatal(err)
	}
	var list v1beta1.ChatMessageList
	if err := s.Direct.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, m := range history.Left(chat, list.Items) {
		left = append(left, m.Name)
	}
	if want := []string{"v", "c-1-1", "c-3-1"}; !slices.Equal(left, want) {
		t.Errorf("%v have left the history, want %v", left, want)
	}
}

// The manager has learned of the chat before it learns of the message that records the end of the turn.
func TestEndOfATurnIsNotGuessed(t *testing.T) {
	u, v := user("u"), user("v")
	chat := chattest.In("ns", chattest.Chat("c", chattest.UID("uid")))
	chat.Status.History = v1beta1.HistoryStatus{Version: 4, Head: "c-3-1", Length: 4}
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "v", HistoryVersion: 3, Parent: "c-1-1", Index: 2,
		Result: v1beta1.TurnAnswered}
	s, r := begin(t, chat, u, v, gen("c-1-1", "u", 1, 1, commitAt(u, "", 0, 1)))
	reason := func() v1beta1.ConditionReason {
		if _, err := r.Reconcile(t.Context(), request("u")); err != nil {
			t.Fatal(err)
		}
		st := fakeapi.Read(t, s, user("u")).Status
		return v1beta1.ReasonOf(meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady))
	}
	if got := reason(); got != "" {
		t.Errorf("it says %s", got)
	}
	ends := commitAt(v, "c-1-1", 2, 3)
	ends.PreviousTurn = &v1beta1.TurnOutcome{Message: "u", Result: v1beta1.TurnInterrupted}
	if err := s.Direct.Create(t.Context(), gen("c-3-1", "v", 3, 3, ends)); err != nil {
		t.Fatal(err)
	}
	if got := reason(); got != v1beta1.ReasonInterrupted {
		t.Errorf("it says %s", got)
	}
}

func TestRecreatedMessageIsNotReportedAsAnswered(t *testing.T) {
	first, second := user("u"), user("u")
	second.UID = "u-second"
	chat := chattest.In("ns", chattest.Chat("c", chattest.UID("uid")))
	chat.Status.History = v1beta1.HistoryStatus{Version: 2, Head: "c-1-1", Length: 2}
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "u", HistoryVersion: 1, Result: v1beta1.TurnAnswered}
	chat.Status.Internal.Turn = v1beta1.TurnInternalStatus{MessageUID: "u-uid", ContentHash: content.Of(first)}
	s, r := begin(t, chat, second, gen("c-1-1", "u", 1, 1, commitAt(first, "", 0, 1)))
	if _, err := r.Reconcile(t.Context(), request("u")); err != nil {
		t.Fatal(err)
	}
	if st := fakeapi.Read(t, s, user("u")).Status; st.State == v1beta1.MessageCommitted {
		t.Errorf("it says %+v", st)
	}
}
