// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package attempts

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
)

// chat has attempt 2 at version 5 under way.
func chat() *v1beta1.Chat {
	c := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	c.Status.History.Version, c.Status.History.Head = 5, "c-4-1"
	c.Status.Generation = &v1beta1.GenerationStatus{Attempt: 2, Pod: "p", Action: v1beta1.ActionGenerateAssistant}
	return c
}

// result answers it.
func result() *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "c-5-2"}, Spec: v1beta1.ChatMessageSpec{
		Parent: "c-4-1",
		Generation: &v1beta1.MessageGeneration{
			ChatUID: "u", HistoryVersion: 5, Attempt: 2, Pod: "p", Action: v1beta1.ActionGenerateAssistant,
		},
	}}
}

func TestMessageNotMatchingAttemptIsNotItsResult(t *testing.T) {
	for name, c := range map[string]struct {
		change          func(*v1beta1.ChatMessage)
		isResult, taken bool
	}{
		"the result":         {func(*v1beta1.ChatMessage) {}, true, false},
		"another name":       {func(m *v1beta1.ChatMessage) { m.Name = "c-5-1" }, false, false},
		"not generated":      {func(m *v1beta1.ChatMessage) { m.Spec.Generation = nil }, false, true},
		"of a deleted chat":  {func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = "v" }, false, false},
		"of another version": {func(m *v1beta1.ChatMessage) { m.Spec.Generation.HistoryVersion = 4 }, false, true},
		"of another attempt": {func(m *v1beta1.ChatMessage) { m.Spec.Generation.Attempt = 1 }, false, true},
		"of another pod":     {func(m *v1beta1.ChatMessage) { m.Spec.Generation.Pod = "q" }, false, true},
		"of another action": {func(m *v1beta1.ChatMessage) { m.Spec.Generation.Action = v1beta1.ActionCompact },
			false, true},
		"behind another message":   {func(m *v1beta1.ChatMessage) { m.Spec.Parent = "c-3-1" }, false, true},
		"the first of the history": {func(m *v1beta1.ChatMessage) { m.Spec.Parent = "" }, false, true},
		"a failure of no reason": {func(m *v1beta1.ChatMessage) { m.Spec.Generation.Outcome = v1beta1.OutcomeFailed },
			false, true},
		"a failure": {func(m *v1beta1.ChatMessage) {
			m.Spec.Generation.Outcome, m.Spec.Generation.Error = v1beta1.OutcomeFailed, &v1beta1.GenerationError{}
		}, true, false},
		"without an attempt number": {func(m *v1beta1.ChatMessage) { m.Spec.Generation.Attempt = 0 }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c0, m := chat(), result()
			c.change(m)
			if got := AnswersCurrentAttempt(c0, &c0.Status, m); got != c.isResult {
				t.Errorf("it is the result: %t", got)
			}
			if got := NameConflict(c0, &c0.Status, m); got != c.taken {
				t.Errorf("it takes the result's name: %t", got)
			}
		})
	}
}

func TestSummaryWithoutCompactionAccountIsNotResult(t *testing.T) {
	c, m := chat(), result()
	c.Status.Generation.Action, m.Spec.Generation.Action = v1beta1.ActionCompact, v1beta1.ActionCompact
	m.Spec.Generation.Outcome = v1beta1.OutcomeCompleted
	if AnswersCurrentAttempt(c, &c.Status, m) || !NameConflict(c, &c.Status, m) {
		t.Error("it is the result")
	}
	m.Spec.Generation.Compaction = &v1beta1.CompactionAccount{}
	if !AnswersCurrentAttempt(c, &c.Status, m) {
		t.Error("one that says what it stands for is no result")
	}
}

func TestNothingAnswersAChatWithoutAnAttempt(t *testing.T) {
	c, m := chat(), result()
	c.Status.Generation = nil
	m.Name, m.Spec.Generation.Attempt = "c-5-0", 0
	if AnswersCurrentAttempt(c, &c.Status, m) || NameConflict(c, &c.Status, m) {
		t.Error("a message answers it")
	}
	if AnswersCurrentAttempt(chat(), &chat().Status, nil) || NameConflict(chat(), &chat().Status, nil) {
		t.Error("no message answers")
	}
	if got, want := Of(c.UID, &c.Status), (fence.Fence{ChatUID: "u", HistoryVersion: 5}); got != want {
		t.Errorf("the fence is %v", got)
	}
	if got := Answered(&v1beta1.ChatMessage{}); got != (fence.Fence{}) {
		t.Errorf("a person's message answers %v", got)
	}
}
