// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/content"
)

func TestOldMessageOfTheNameIsNotCertain(t *testing.T) {
	m := said("q", 3, 5)
	m.UID = "old"
	chat := chat()
	chat.Status.Internal.Tail = []v1beta1.CommittedMessage{
		{Message: "q", UID: "new", HistoryVersion: 5, ContentHash: content.Of(m)}}
	if Certain(chat, m) {
		t.Error("it is taken for the one that was committed")
	}
	m.Status = v1beta1.ChatMessageStatus{}
	if n := Of(chat, m); n.Placed || MayHold(chat, m) {
		t.Errorf("it stands at %+v", n)
	}
}

func TestResultOutsideTheHistoryPlacesNothing(t *testing.T) {
	chat := chat()
	chat.Status = v1beta1.ChatStatus{History: v1beta1.HistoryStatus{Version: 2, Head: "c-1-1", Length: 2}}
	asked := &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "q", UID: "q"}}
	reply, forged := made("c-1-1", 1, 2), made("c-99-1", 9, 100)
	reply.Spec.Parent, forged.Spec.Parent = "q", "x"
	reply.Spec.Follows = []v1beta1.CommittedMessage{{Message: "q", UID: "q", HistoryVersion: 1}}
	forged.Spec.Follows = []v1beta1.CommittedMessage{{Message: "q", UID: "q", HistoryVersion: 98, Position: 7}}
	messages := []v1beta1.ChatMessage{*asked, *reply, *forged}
	if _, missing := Whole(RefOf(chat), Nodes(chat, messages)); missing != 2 {
		t.Errorf("message %d is missing", missing)
	}
}
