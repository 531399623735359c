// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// histories are messages that stand for earlier conversations, which end with words of the role.
func histories(last v1beta1.MessageRole, names ...string) []Message {
	all := messages(false, names...)
	for i := range all {
		all[i].LastRole = last
	}
	return all
}

func TestHistoryIsAnsweredUnlessItEndsWithReply(t *testing.T) {
	for last, want := range map[v1beta1.MessageRole]string{
		v1beta1.RoleUser:      "Running v1 h/1 1:GenerateAssistant []",
		v1beta1.RoleTool:      "Running v1 h/1 1:GenerateAssistant []",
		v1beta1.RoleAssistant: "Waiting v1 h/1 - []",
	} {
		t.Run(string(last), func(t *testing.T) {
			w := newWorld(t).pass(func(f *Facts) { f.Open = histories(last, "h") }).want(want)
			if got := w.chat.Status.Turn.Result; last == v1beta1.RoleAssistant && got != v1beta1.TurnAnswered {
				t.Errorf("the turn ended as %s", got)
			}
		})
	}
}

func TestWhatFollowsAHistoryIsAnsweredNext(t *testing.T) {
	w := newWorld(t).pass(func(f *Facts) {
		f.Open = append(histories(v1beta1.RoleAssistant, "h"), messages(false, "q")...)
	})
	w.want("Running v2 q/2 1:GenerateAssistant []")
}

func TestQueuedHistoryEndingWithReplyCompletesItsTurn(t *testing.T) {
	last := func(f *Facts) {
		for i := range f.Queued {
			if f.Queued[i].Name == "h" {
				f.Queued[i].LastRole = v1beta1.RoleAssistant
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
	history := chattest.User("c", "h", func(m *v1beta1.ChatMessage) {
		m.Spec.Role, m.Spec.Content = v1beta1.RoleUser, ""
		m.Spec.History = []v1beta1.PriorMessage{{Role: v1beta1.RoleUser}, {Role: v1beta1.RoleAssistant}}
	})
	rest := rest([]*v1beta1.ChatMessage{history})
	if rest.Unanswered || rest.Turn.Internal.LastRole != v1beta1.RoleAssistant ||
		rest.Turn.Result != v1beta1.TurnAnswered {
		t.Errorf("left is %+v", rest)
	}
}
