// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
)

// histories are messages that stand for earlier conversations, which end with words of the role.
func histories(last v1alpha1.MessageRole, names ...string) []Message {
	all := messages(false, names...)
	for i := range all {
		all[i].LastRole = last
	}
	return all
}

func TestHistoryIsAnsweredUnlessItEndsWithReply(t *testing.T) {
	for last, want := range map[v1alpha1.MessageRole]string{
		v1alpha1.RoleUser:      "Running v1 h/1 1:GenerateAssistant []",
		v1alpha1.RoleTool:      "Running v1 h/1 1:GenerateAssistant []",
		v1alpha1.RoleAssistant: "Waiting v1 h/1 - []",
	} {
		t.Run(string(last), func(t *testing.T) {
			w := newWorld(t).pass(func(f *Facts) { f.Open = histories(last, "h") }).want(want)
			if got := w.chat.Status.Turn.Result; last == v1alpha1.RoleAssistant && got != v1alpha1.TurnAnswered {
				t.Errorf("the turn ended as %s", got)
			}
		})
	}
}

func TestWhatFollowsAHistoryIsAnsweredNext(t *testing.T) {
	w := newWorld(t).pass(func(f *Facts) {
		f.Open = append(histories(v1alpha1.RoleAssistant, "h"), messages(false, "q")...)
	})
	w.want("Running v2 q/2 1:GenerateAssistant []")
}

func TestQueuedHistoryEndingWithReplyCompletesItsTurn(t *testing.T) {
	last := func(f *Facts) {
		for i := range f.Queued {
			if f.Queued[i].Name == "h" {
				f.Queued[i].LastRole = v1alpha1.RoleAssistant
			}
		}
	}
	w := newWorld(t).say("a", "h", "q").want("Running v1 a/1 1:GenerateAssistant [h q]")
	w.facts = last
	w.answer(chattest.Says("hi"))
	for range 3 {
		w.pass(nil)
	}
	w.want("Running v4 q/4 1:GenerateAssistant []")
}

func TestRemainingHistoryEndingWithReplyNeedsNoAnswer(t *testing.T) {
	history := chattest.User("c", "h", func(m *v1alpha1.ChatMessage) {
		m.Spec.Role, m.Spec.Content = v1alpha1.RoleUser, ""
		m.Spec.History = []v1alpha1.PriorMessage{{Role: v1alpha1.RoleUser}, {Role: v1alpha1.RoleAssistant}}
	})
	rest := rest([]*v1alpha1.ChatMessage{history})
	if rest.Unanswered || rest.Turn.Internal.LastRole != v1alpha1.RoleAssistant ||
		rest.Turn.Result != v1alpha1.TurnAnswered {
		t.Errorf("left is %+v", rest)
	}
}
