// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// classGone is what is read of a chat whose class does not exist.
func classGone(f *Facts) {
	f.Model, f.Blocked = nil, &v1beta1.GenerationError{
		Reason: v1beta1.ErrorChatClassNotFound, Message: "ChatClass coder does not exist", Advice: "Create it",
	}
}

func TestTurnWaitsForDeletedClassThenContinues(t *testing.T) {
	gone := func(change func(*Facts)) func(*Facts) { return func(f *Facts) { classGone(f); change(f) } }
	for name, c := range map[string]struct {
		begin           func(*testing.T) *world
		meanwhile       func(*world) func(*Facts)
		held, continues string
	}{
		"behind a step": {
			func(t *testing.T) *world { return newWorld(t).say("a") },
			func(w *world) func(*Facts) {
				return func(f *Facts) { f.Result = chattest.Answer(w.chat, chattest.Calls("1")) }
			},
			"Running v2 c-1-1/2 - []", "Running v2 c-1-1/2 1:ExecuteTools []",
		},
		"behind an approval": {
			func(t *testing.T) *world { return waits(t, pending(v1beta1.RequiresApproval, "1")...) },
			func(*world) func(*Facts) {
				return func(f *Facts) {
					f.Approvals = []Approval{{v1beta1.ToolDecision{ID: "1", Decision: v1beta1.DecisionApprove, Approval: "yes"}}}
				}
			},
			"Running v3 c-1-1/2 - []", "Running v3 c-1-1/2 1:ExecuteTools []",
		},
		"behind an attempt whose pod could not find the class": {
			func(t *testing.T) *world { return newWorld(t).say("a") },
			func(w *world) func(*Facts) {
				return func(f *Facts) {
					f.Result = chattest.Answer(w.chat, chattest.Fails(v1beta1.ErrorChatClassNotFound, chattest.ForNow))
				}
			},
			"Running v1 a/1 - []", "Running v1 a/1 2:GenerateAssistant []",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := c.begin(t)
			w.pass(gone(c.meanwhile(w))).want(c.held)
			if ready := readyOf(w); ready.Status != metav1.ConditionUnknown || ready.Reason != "ChatClassNotFound" ||
				ready.Message != "ChatClass coder does not exist. Create it" {
				t.Errorf("Ready is %+v", ready)
			}
			w.later(time.Hour).want(c.continues)
		})
	}
}

func TestStatusRecordsNamespaceClassOfNewestStep(t *testing.T) {
	speaks := func(generation int64) func(*Facts) {
		return func(f *Facts) { f.Namespace = chattest.Class("everybody"); f.Namespace.Generation = generation }
	}
	w := newWorld(t)
	w.facts = speaks(1)
	w.say("a")
	if has := w.chat.Status.NamespaceClass; has == nil || has.Name != "everybody" || has.Generation != 1 {
		t.Errorf("the first step goes by %+v", has)
	}
	w.facts = speaks(2)
	w.answer(chattest.Says("hi"))
	if has := w.chat.Status.NamespaceClass; has == nil || has.Generation != 1 {
		t.Errorf("a chat at rest says %+v", has)
	}
	w.say("b")
	if has := w.chat.Status.NamespaceClass; has == nil || has.Generation != 2 {
		t.Errorf("the next step goes by %+v", has)
	}
	w.facts = nil
	w.answer(chattest.Says("hi")).say("c")
	if has := w.chat.Status.NamespaceClass; has != nil {
		t.Errorf("nobody speaks for the namespace, and the step goes by %+v", has)
	}
}
