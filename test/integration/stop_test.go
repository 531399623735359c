// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// waitForStop waits until a tool has ended the turn that the message began.
func waitForStop(t *testing.T, ns, message, tool, head string, length int64) {
	t.Helper()
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, head, length)
	st := chatIn(t, ns, "c").Status
	check.Equal(t, "the turn is", []any{v1beta1.TurnStoppedAfterTool, tool, v1beta1.ReasonStoppedAfterTool},
		[]any{st.Turn.Result, st.Turn.StoppedBy, readyReason(st.Conditions)})
	waitForMessage(t, ns, message, metav1.ConditionTrue, v1beta1.ReasonStoppedAfterTool)
}

func TestBuiltInToolStopsTheTurn(t *testing.T) {
	ns := parallel(t)
	chat := newChat(ns, "c", "What time is it?")
	chat.Spec.Tools = &v1beta1.ChatTools{StopAfter: []string{"current_time"}}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Calls("call_1"))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Results("call_1"), chattest.StoppedBy("current_time"))
	waitForStop(t, ns, "c-prompt", "current_time", "c-2-1", 3)

	create(t, say(ns, "c", "more"))
	answers(t, assigned(t, ns, "c", 4, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "more", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	remove(t, messageIn(t, ns, "more"))
	waitForStop(t, ns, "c-prompt", "current_time", "c-2-1", 3)
}

func TestClientsResultStopsTheTurnForGood(t *testing.T) {
	ns := parallel(t)
	chat := ticketChat(ns)
	chat.Spec.Tools.StopAfter = []string{"open_ticket"}
	create(t, chat)

	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	failed := resultsOf(ns, "failed", "call_1", `"the tracker is down"`)
	failed.Spec.Parts[0].ToolResult.IsError = true
	create(t, failed)

	answers(t, assigned(t, ns, "c", 3, 1), chattest.CallsOf(ticket("call_2"), ticket("call_3")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	done := resultsOf(ns, "done", "call_3", `{"number":3}`, "call_2", `"the tracker is down"`)
	done.Spec.Parts[0].ToolResult.Name, done.Spec.Parts[1].ToolResult.IsError = "something_else", true
	create(t, done)
	waitForStop(t, ns, "c-prompt", "open_ticket", "done", 5)
	waitForMessage(t, ns, "done", metav1.ConditionTrue, v1beta1.ReasonResultsAccepted)
	for message, want := range map[string]string{"failed": "", "done": "open_ticket"} {
		if got := messageIn(t, ns, message).Status.StoppedBy; got != want {
			t.Errorf("of %s, %q ends the turn", message, got)
		}
	}

	// What is listed now does not matter any more: the results were taken before.
	patch(t, chatIn(t, ns, "c"), `{"spec":{"tools":{"stopAfter":["current_time"]}}}`)
	create(t, say(ns, "c", "more"))
	answers(t, assigned(t, ns, "c", 6, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "more", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	remove(t, messageIn(t, ns, "more"))
	waitForStop(t, ns, "c-prompt", "open_ticket", "done", 5)
}

func TestClientsResultStopsTheTurnAfterApprovedCalls(t *testing.T) {
	ns := parallel(t)
	chat := ticketChat(ns)
	chat.Spec.Tools.StopAfter = []string{"open_ticket"}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1"), clock("call_2")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	create(t, resultsOf(ns, "done", "call_1", `{"number":1}`))
	create(t, decision(t, ns, "call_2", v1beta1.DecisionApprove))
	chat = assigned(t, ns, "c", 3, 1)
	got := chat.Status
	check.Equal(t, "generation", []any{v1beta1.ActionExecuteTools, "open_ticket", ""},
		[]any{got.Generation.Action, got.Turn.StoppedBy, got.Turn.Result})
	answers(t, chat, chattest.Results("call_1"))
	waitForStop(t, ns, "c-prompt", "open_ticket", "c-3-1", 4)
}
