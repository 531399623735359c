// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// required waits until people are asked, and returns for what.
func required(t *testing.T, ns string, calls int) *v1beta1.RequiresActionStatus {
	t.Helper()
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	action := chatIn(t, ns, "c").Status.RequiresAction
	if len(action.ToolCalls) != calls {
		t.Fatalf("people are asked for %+v", action)
	}
	return action
}

// Security (a hostile MCP server): can ask people for input, which approvers answer; its request is shown unchanged.
func TestCallRequestingInputIsRepeatedWithAnswer(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	asking := v1beta1.ToolCall{ID: "call_1", Name: "s__book", Input: `{}`}
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(asking, clock("call_2")))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Asks("call_1"))

	// People decide about the call that needs approval and answer the other one.
	action := required(t, ns, 2)
	if got := action.ToolCalls[1]; got.ID != "call_1" || got.Kind != v1beta1.RequiresApproval ||
		got.ApprovalCause != v1beta1.ApprovalInputRequired || got.InputRequests == "" || action.Message != "c-1-1" {
		t.Errorf("people are asked for %+v", action)
	}
	answer := decision(t, ns, "call_1", v1beta1.DecisionApprove)
	answer.Spec.Content = `{"name":"Ada"}`
	create(t, decision(t, ns, "call_2", v1beta1.DecisionApprove))
	create(t, answer)
	chat := assigned(t, ns, "c", 4, 1)
	said := map[string]string{}
	for _, d := range chat.Status.Internal.Turn.Decisions {
		said[d.ID] = d.Content
	}
	if len(said) != 2 || said["call_1"] != `{"name":"Ada"}` || chat.Status.Generation.Action != v1beta1.ActionExecuteTools {
		t.Fatalf("the decisions are %+v", chat.Status.Internal.Turn.Decisions)
	}

	// It asks once more, and nobody else is asked again.
	answers(t, chat, chattest.Results("call_2"), chattest.Asks("call_1"))
	if action := required(t, ns, 1); action.ToolCalls[0].ID != "call_1" || action.Message != "c-4-1" {
		t.Errorf("people are asked for %+v", action)
	}
	create(t, decision(t, ns, "call_1", v1beta1.DecisionDeny))
	answers(t, assigned(t, ns, "c", 6, 1), chattest.Results("call_1"))
	answers(t, assigned(t, ns, "c", 7, 1), chattest.Says("Booked."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-7-1", 6)
}

func TestChatReportsServersMissingFromLatestReply(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "please"), chattest.Says("I could not look."), chattest.Without("tracker"))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
	unavailable := func() bool {
		return meta.IsStatusConditionTrue(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionMCPServersUnavailable)
	}
	if !unavailable() {
		t.Error("it does not say so")
	}
	create(t, say(ns, "c", "again"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Here it is."))
	eventually(t, "it does not say so any more", func() bool { return !unavailable() })
}
