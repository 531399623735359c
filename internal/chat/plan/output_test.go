// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// formed makes a reply an answer that has the problem, or else the value.
func formed(problem, value string) func(*v1beta1.ChatMessage) {
	return func(m *v1beta1.ChatMessage) {
		g := m.Spec.Generation
		g.ReplyOutcome, g.Output = v1beta1.ReplyComplete, &v1beta1.MessageOutput{Problem: problem}
		if value != "" {
			g.Output.Value = &runtime.RawExtension{Raw: []byte(value)}
		}
	}
}

// wantOutput checks status.output and the condition OutputReady.
func (w *world) wantOutput(value string, ready metav1.ConditionStatus) *world {
	w.t.Helper()
	got, status := "", metav1.ConditionStatus("")
	if out := w.chat.Status.Output; out != nil {
		got = string(out.Raw)
	}
	if c := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionOutputReady); c != nil {
		status = c.Status
	}
	if got != value || status != ready {
		w.t.Errorf("the output is %q, ready %q", got, status)
	}
	return w
}

func TestAnAnswerOfAnotherFormIsTriedAgain(t *testing.T) {
	invalid := formed("/n is missing", "")
	w := newWorld(t).say("a").answer(chattest.Says("{}"), invalid)
	w.want("Running v2 c-1-1/2 1:GenerateAssistant []").wantOutput("", metav1.ConditionFalse)
	w.answer(chattest.Says(`{"n":4}`), formed("", `{"n":4}`)).want("Waiting v3 c-2-1/3 - []")
	w.wantOutput(`{"n":4}`, metav1.ConditionTrue).say("b").wantOutput("", "")
	for range v1beta1.MaxOutputTries - 1 {
		w.answer(chattest.Says("{}"), invalid)
	}
	w.answer(chattest.Calls("1")).wantOutput("", "") // The count starts at 0 again.
	w.answer(chattest.Results("1"))
	for range v1beta1.MaxOutputTries {
		w.answer(chattest.Says("{}"), invalid)
	}
	if e := w.chat.Status.LastError; e == nil || e.Reason != v1beta1.ErrorOutputInvalid ||
		!strings.Contains(e.Message, "/n is missing") {
		t.Errorf("the error is %+v", e)
	}
	for _, n := range w.last.Notices { // An Event holds no words of a model.
		if strings.Contains(n.Note, "/n is missing") {
			t.Errorf("the Event is %+v", n)
		}
	}
	w.wantOutput("", metav1.ConditionFalse)
}

func TestTheOutputLeavesWithItsMessage(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("{}"), formed("/n is missing", "")).
		answer(chattest.Says(`{"n":4}`), formed("", `{"n":4}`)).wantOutput(`{"n":4}`, metav1.ConditionTrue)
	first := chattest.Generated("c-1-1", v1beta1.RoleAssistant, chattest.Says("{}"), formed("/n is missing", ""))
	w.pass(func(f *Facts) { f.Truncated = rest([]*v1beta1.ChatMessage{question("a"), first}) }).
		want("Running v4 c-1-1/2 1:GenerateAssistant []").wantOutput("", metav1.ConditionFalse)
	w = newWorld(t).say("a").answer(chattest.Says(`{"n":4}`), formed("", `{"n":4}`)).say("b").answer(chattest.Says("x"))
	whole := chattest.Generated("c-1-1", v1beta1.RoleAssistant, chattest.Says("{}"), formed("", `{"n":4}`))
	w.pass(func(f *Facts) { f.Truncated = rest([]*v1beta1.ChatMessage{question("a"), whole}) }).
		wantOutput(`{"n":4}`, metav1.ConditionTrue)
}
