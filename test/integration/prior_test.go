// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// earlier is a message that stands for a conversation which ended with words of the role.
func earlier(ns, name string, last v1beta1.MessageRole) *v1beta1.ChatMessage {
	m := say(ns, "c", name)
	m.Spec.Content, m.Spec.History = "", []v1beta1.PriorMessage{
		{Role: v1beta1.RoleUser, Content: "Which node is it?"}, {Role: last, Content: "Node seven."},
	}
	return m
}

func TestChatContinuesFromImportedHistory(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	create(t, earlier(ns, "before", v1beta1.RoleAssistant))
	waitForMessage(t, ns, "before", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	if got := chatIn(t, ns, "c").Status; got.History.Length != 1 || got.Phase != v1beta1.ChatWaiting ||
		got.Generation != nil || got.Title != "Which node is it?" {
		t.Errorf("the chat is %+v", got)
	}
	create(t, say(ns, "c", "q"))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Says("The seventh."))
	waitForMessage(t, ns, "q", metav1.ConditionTrue, v1beta1.ReasonAnswered)
}

func TestImportedHistoryEndingWithQuestionIsAnswered(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	create(t, earlier(ns, "before", v1beta1.RoleUser))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("The seventh."))
	waitForMessage(t, ns, "before", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	m := messageIn(t, ns, "before")
	base := m.DeepCopy()
	m.Spec.History[1] = v1beta1.PriorMessage{Role: v1beta1.RoleAssistant, Content: "Node eight."}
	check.OK(t, cluster.Client.Patch(t.Context(), m, client.MergeFrom(base)))
	eventually(t, "the chat goes on from the edited history", func() bool {
		st := chatIn(t, ns, "c").Status
		return st.History.Head == "before" && st.History.Length == 1 && st.Phase == v1beta1.ChatWaiting
	})
}
