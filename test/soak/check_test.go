// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// finished is a chat at rest, with the kinds of questions asked and answered.
func finished(kinds ...kind) *state {
	s := &state{chats: []v1beta1.Chat{{ObjectMeta: metav1.ObjectMeta{Name: "c00", ResourceVersion: "7"}}}}
	chat := &s.chats[0]
	chat.Status.Phase = v1beta1.ChatWaiting
	chat.Status.Conditions = answered()
	var follows []v1beta1.CommittedMessage
	add := func(m v1beta1.ChatMessage, content string) *v1beta1.ChatMessage {
		index, parent := chat.Status.History.Length, chat.Status.History.Head
		m.Spec.ChatRef.Name = chat.Name
		if g := m.Spec.Generation; g != nil {
			m.Spec.Parent, m.Spec.Index = parent, &index
			m.Spec.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: &content}}
			g.Attempt, g.Outcome = 1, v1beta1.OutcomeCompleted
			m.Spec.Follows, follows = follows, nil
		} else {
			follows = append(follows, v1beta1.CommittedMessage{Message: m.Name, Parent: parent, Position: index,
				HistoryVersion: index + 1})
			m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, Parent: parent, Index: &index,
				Conditions: answered()}
			m.Spec.Content = content
		}
		chat.Status.History.Head, chat.Status.History.Length = m.Name, index+1
		s.messages = append(s.messages, m)
		return &s.messages[len(s.messages)-1]
	}
	for i, k := range kinds {
		q := &question{chat: "c00", number: i, kind: k, name: fmt.Sprintf("q%d", i)}
		s.questions = append(s.questions, q)
		add(v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: q.name}}, q.text())
		for step := range k.steps() {
			m := v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("q%d-r%d", i, step)}}
			m.Spec.Role, m.Spec.Generation = v1beta1.RoleAssistant, &v1beta1.MessageGeneration{}
			if step == 1 {
				m.Spec.Role = v1beta1.RoleTool
			} else {
				s.calls = append(s.calls, call{Status: 200})
			}
			add(m, k.answer(q.text()))
		}
	}
	return s
}

func answered() []metav1.Condition {
	return []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue,
		Reason: string(v1beta1.ReasonAnswered)}}
}

func (s *state) named(name string) *v1beta1.ChatMessage {
	for i := range s.messages {
		if s.messages[i].Name == name {
			return &s.messages[i]
		}
	}
	return nil
}

func TestCorrectAnswersAreNoProblem(t *testing.T) {
	s := finished(quick, tool, slow, long)
	if got := s.broken(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if s.idle() != nil || s.tidy() != nil {
		t.Errorf("idle: %v, tidy: %v", s.idle(), s.tidy())
	}
}

func TestWhatDoesNotHoldIsFound(t *testing.T) {
	cases := map[string]struct {
		damage func(s *state)
		says   string
	}{
		"a missing message": {func(s *state) { s.messages = s.messages[1:] }, "not whole"},
		"a wrong index":     {func(s *state) { *s.named("q1-r2").Spec.Index = 9 }, "not whole"},
		"a message without a place": {func(s *state) {
			s.named("q1-r0").Spec.Follows, s.named("q1").Status.Index = nil, nil
		}, "not whole"},
		"an answer to another": {func(s *state) {
			*s.named("q1-r2").
				Spec.Parts[0].Text = "answer to quick question c00-0"
		}, "answers it with"},
		"a step too many": {func(s *state) {
			s.questions[1].kind = quick
			s.named("q1").
				Spec.Content = s.questions[1].text()
		}, "3 messages answer it, not 1"},
		"a failed answer": {func(s *state) { s.named("q0-r0").Spec.Generation.Outcome = v1beta1.OutcomeFailed },
			"Failed"},
		"another role": {func(s *state) { s.named("q1-r1").Spec.Role = v1beta1.RoleAssistant },
			"is of Assistant"},
		"not Ready": {func(s *state) { s.named("q0").Status.Conditions[0].Status = metav1.ConditionUnknown },
			"its condition is"},
		"another reason": {func(s *state) { s.named("q0").Status.Conditions[0].Reason = "TurnFailed" },
			"its condition is"},
		"not committed": {func(s *state) { s.named("q0").Status.State = v1beta1.MessageQueued },
			"its state is Queued"},
		"another order":         {func(s *state) { s.questions[0].number, s.questions[1].number = 1, 0 }, "as number"},
		"a stranger's question": {func(s *state) { s.questions = s.questions[1:] }, "nobody asked"},
		"a question without a turn": {func(s *state) {
			s.questions = append(s.questions,
				&question{chat: "c00", number: 2, name: "q9"})
		}, "q9 is not in the history"},
		"a chat that is gone": {func(s *state) { s.chats = nil }, "does not exist"},
		"a chat in Error":     {func(s *state) { s.chats[0].Status.Phase = v1beta1.ChatError }, "c00 is Error"},
		"a call too many": {func(s *state) { s.calls = append(s.calls, call{Status: 200}) },
			"called 4 times, for 3 steps and 0 lost"},
		"a call too few":           {func(s *state) { s.calls = s.calls[1:] }, "called 2 times"},
		"a refused call":           {func(s *state) { s.calls[0].Status = 400 }, "refused"},
		"a call without an answer": {func(s *state) { s.calls[0].Status = 0 }, "refused a request with 0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := finished(quick, tool)
			c.damage(s)
			check.Contains(t, strings.Join(s.broken(), "\n"), c.says)
		})
	}
}

func TestALostAttemptExplainsACall(t *testing.T) {
	s := finished(quick)
	s.named("q0-r0").Spec.Generation.Attempt = 2
	s.calls = append(s.calls, call{Aborted: true})
	if got := s.broken(); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

func TestWhatIsLeftOverIsFound(t *testing.T) {
	now := metav1.Now()
	cases := map[string]func(s *state){
		"a report of a lost attempt": func(s *state) {
			s.messages = append(s.messages, v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "left"}})
		},
		"a chat that is being deleted": func(s *state) { s.chats[0].DeletionTimestamp = &now },
		"a pod that is not ready":      func(s *state) { s.pods = append(s.pods, podNamed("left")) },
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			s := finished(quick)
			damage(s)
			if s.tidy() == nil {
				t.Error("nothing was found")
			}
		})
	}
}

func TestWhoIsNotIdleIsNamed(t *testing.T) {
	for _, damage := range []func(s *state){
		func(s *state) { s.chats[0].Status.Phase = v1beta1.ChatRunning },
		func(s *state) { s.chats[0].Status.Queue = []v1beta1.QueuedMessage{{Name: "q9"}} },
		func(s *state) { s.chats[0].Status.Conditions = nil },
	} {
		s := finished(quick)
		damage(s)
		if err := s.idle(); err == nil || !strings.Contains(err.Error(), "c00") {
			t.Errorf("got %v", err)
		}
	}
	s := finished(quick)
	s.named("q0").Status.Conditions = nil
	if err := s.idle(); err == nil || !strings.Contains(err.Error(), "q0") {
		t.Errorf("got %v", err)
	}
}
