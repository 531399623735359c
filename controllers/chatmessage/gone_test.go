// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// repliesOf are three replies of a chat c with that UID.
func repliesOf(uid string) (replies []client.Object) {
	for _, name := range []string{"-1", "-2", "-3"} {
		replies = append(replies, replied(func(m *v1beta1.ChatMessage) {
			m.Name, m.Spec.Generation.ChatUID = uid+name, uid
			m.UID = types.UID(m.Name)
		}))
	}
	return replies
}

func TestWhetherAChatIsGoneIsAskedOnce(t *testing.T) {
	s, r := begin(t, repliesOf("old")...)
	failed := false
	s.Fail = func(call string) error {
		if call == "live get chat" && !failed {
			failed = true
			return errors.New("nobody answers")
		}
		return nil
	}
	if _, err := r.Reconcile(t.Context(), request("old-1")); err == nil {
		t.Error("nobody could say that the chat is gone")
	}
	for _, name := range []string{"old-1", "old-2", "old-3"} {
		if _, err := r.Reconcile(t.Context(), request(name)); err != nil {
			t.Error(err)
		}
	}
	asked := slices.DeleteFunc(s.Calls(), func(call string) bool { return call != "live get chat" })
	if len(asked) != 2 {
		t.Errorf("it was asked %d times, once in vain", len(asked))
	}
	var left v1beta1.ChatMessageList
	if err := s.Direct.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d messages are left: %v", len(left.Items), err)
	}
}

func TestDeletedChatCleanupKeepsMessagesOfRecreatedChat(t *testing.T) {
	s, r := begin(t, append(repliesOf("old"), repliesOf("new")...)...)
	if _, err := r.Reconcile(t.Context(), request("old-1")); err != nil {
		t.Error(err)
	}
	chat := chattest.In("ns", chattest.Chat("c", chattest.UID("new")))
	if err := s.Direct.Create(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"old-2", "old-3", "new-1", "new-2", "new-3"} {
		if _, err := r.Reconcile(t.Context(), request(name)); err != nil {
			t.Error(err)
		}
	}
	var left v1beta1.ChatMessageList
	if err := s.Direct.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	for i := range left.Items {
		if uid := left.Items[i].Spec.Generation.ChatUID; uid != "new" {
			t.Errorf("%s is left of chat %s", left.Items[i].Name, uid)
		}
	}
	if len(left.Items) != 3 {
		t.Errorf("%d messages are left, not those of the new chat", len(left.Items))
	}
}

// The UID that a message names may be any, also that of a chat that exists under another name.
func TestChatDeletionIsTrackedByRequestedName(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c", chattest.UID("victim")))
	s, r := begin(t, chat)
	for _, c := range []struct {
		name types.NamespacedName
		gone bool
	}{
		{types.NamespacedName{Namespace: "other", Name: "c"}, true}, {types.NamespacedName{Namespace: "ns", Name: "d"}, true},
		{client.ObjectKeyFromObject(chat), false},
	} {
		if gone, err := r.gone.isGone(t.Context(), s.Live, c.name, "victim"); gone != c.gone || err != nil {
			t.Errorf("%s is gone: %v, %v", c.name, gone, err)
		}
	}
}
