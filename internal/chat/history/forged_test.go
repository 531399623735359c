// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
)

func TestOldMessageOfTheNameIsNotCertain(t *testing.T) {
	m := chattest.User("c", "u", chattest.Defaulted)
	m.UID = "old"
	chat := chattest.Chat("c", chattest.UID("uid"))
	chat.Status.Internal.Tail = []v1alpha1.CommittedMessage{
		{Message: "u", UID: "new", HistoryVersion: 1, ContentHash: content.Of(m)}}
	if Certain(chat, m) {
		t.Error("it is taken for the one that was committed")
	}
}

func TestResultOutsideTheHistoryPlacesNothing(t *testing.T) {
	chat := chattest.Chat("c", chattest.UID("uid"))
	chat.Status.History = v1alpha1.HistoryStatus{Version: 2, Head: "c-1-1", Length: 2}
	u := chattest.User("c", "u", chattest.Defaulted)
	u.UID = "u"
	result := func(name, parent string, index, version int64, of v1alpha1.CommittedMessage) v1alpha1.ChatMessage {
		of.Message, of.UID = "u", "u"
		m := chattest.Generated(name, v1alpha1.RoleAssistant)
		m.Spec.ChatRef.Name, m.Spec.Parent, m.Spec.Index = "c", parent, new(index)
		m.Spec.Follows = []v1alpha1.CommittedMessage{of}
		m.Spec.Generation.ChatUID, m.Spec.Generation.HistoryVersion = "uid", version
		return *m
	}
	list := []v1alpha1.ChatMessage{*u, result("c-1-1", "u", 1, 1, v1alpha1.CommittedMessage{HistoryVersion: 1}),
		result("c-99-1", "x", 9, 99, v1alpha1.CommittedMessage{HistoryVersion: 98, Position: 7})}
	if _, missing := Whole(RefOf(chat), Nodes(chat, list)); missing != 2 {
		t.Errorf("message %d is missing", missing)
	}
}
