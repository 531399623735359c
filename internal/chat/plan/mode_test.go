// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/test/kit/chattest"
)

// approved is the world of a chat that has had a plan approved, and is about to carry it out.
func approved(t *testing.T) *world {
	t.Helper()
	w := waitsForApproval(t)
	w.chat.Spec.Mode = v1beta1.ModePlan
	w.approve("1", v1beta1.DecisionApprove).answer(chattest.Results("1"), chattest.PlanApproved())
	if got := w.chat.EffectiveMode(); got != "" {
		t.Fatalf("a chat whose plan was approved has mode %q", got)
	}
	return w
}

// Security (a model in mode Plan or Explore): can write any plan, and do something else once that is approved.
func TestApprovedPlanEndsPlanModeForTurn(t *testing.T) {
	w := approved(t).answer(chattest.Calls("2")).answer(chattest.Results("2"))
	if !w.chat.Status.Turn.PlanApproved {
		t.Error("a later step of the turn plans again")
	}
	w.answer(chattest.Says("Done.")).say("b")
	if got := w.chat.EffectiveMode(); got != v1beta1.ModePlan {
		t.Errorf("the next turn has mode %q", got)
	}
}

// Security (a model in mode Plan or Explore): cannot reuse a plan that was approved in another turn, or that was edited
// away.
func TestPlanApprovalEndsWhenHistoryLosesIt(t *testing.T) {
	calling := chattest.Generated("c-1-1", v1beta1.RoleAssistant, chattest.CallsRequiring(v1beta1.RequiresApproval, "1"))
	results := chattest.Generated("c-2-1", v1beta1.RoleTool, chattest.Results("1"), chattest.PlanApproved())
	for want, kept := range map[bool][]*v1beta1.ChatMessage{
		true: {question("a"), calling, results}, false: {question("a"), calling},
	} {
		w := approved(t)
		w.pass(func(f *Facts) { f.Truncated = rest(kept) })
		if got := w.chat.Status.Turn.PlanApproved; got != want {
			t.Errorf("with %d messages left, that the plan is approved is %t", len(kept), got)
		}
	}
}

func TestApprovalsHaveLongerDefaultDeadline(t *testing.T) {
	for _, c := range []struct {
		seconds, ofClass int32
		kinds            []v1beta1.RequiredAction
		want             string
	}{
		{0, 0, []v1beta1.RequiredAction{v1beta1.RequiresApproval}, "168h0m0s"},
		{0, 0, []v1beta1.RequiredAction{v1beta1.RequiresApproval, v1beta1.RequiresClient}, "5m0s"},
		{60, 0, []v1beta1.RequiredAction{v1beta1.RequiresApproval}, "1m0s"},
		{0, 3600, []v1beta1.RequiredAction{v1beta1.RequiresApproval}, "1h0m0s"},
		{0, 3600, []v1beta1.RequiredAction{v1beta1.RequiresApproval, v1beta1.RequiresClient}, "5m0s"},
		{0, 2592000, []v1beta1.RequiredAction{v1beta1.RequiresApproval}, "168h0m0s"},
		{0, 60, []v1beta1.RequiredAction{v1beta1.RequiresApproval}, "1m0s"},
		{7200, 3600, []v1beta1.RequiredAction{v1beta1.RequiresApproval}, "1h0m0s"},
	} {
		w := newWorld(t).say("a")
		if c.seconds > 0 {
			w.chat.Spec.Limits = &v1beta1.ChatLimits{ActionDeadlineSeconds: &c.seconds}
		}
		if c.ofClass > 0 {
			w.facts = ofClass(&v1beta1.ChatLimits{ActionDeadlineSeconds: &c.ofClass})
		}
		var calls []v1beta1.PendingToolCall
		var replies []chattest.Reply
		for i, kind := range c.kinds {
			id := string(rune('1' + i))
			calls, replies = append(calls, pending(kind, id)...), append(replies, chattest.CallsRequiring(kind, id))
		}
		w.pass(func(f *Facts) { f.Result, f.Calls = chattest.Answer(w.chat, replies...), calls })
		if got := w.chat.Status.RequiresAction.Deadline.Sub(now).String(); got != c.want {
			t.Errorf("%+v: %v wait %s", c, c.kinds, got)
		}
	}
}

// ofClass gives the chat a class with these limits, and the settings that are in force by it.
func ofClass(most *v1beta1.ChatLimits) func(*Facts) {
	class := chattest.Class("coder", func(s *v1beta1.ChatClassSpec) {
		s.Restrictions = &v1beta1.ChatRestrictions{Limits: most}
	})
	return func(f *Facts) {
		f.Class = &Class{ChatClass: class, Said: f.Chat}
		f.Chat, f.Class.Ignored = chatclass.Effective(f.Chat, class)
	}
}
