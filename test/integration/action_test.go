// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// ticketChat is a chat whose client opens tickets, and whose calls of current_time need approval.
func ticketChat(ns string) *v1beta1.Chat {
	chat := newChat(ns, "c", "please")
	chat.Spec.Tools = &v1beta1.ChatTools{
		Client: []v1beta1.ClientTool{{
			Name:        "open_ticket",
			InputSchema: &runtime.RawExtension{Raw: []byte(`{"type":"object","properties":{"title":{"type":"string"}}}`)},
		}},
		Approval: []v1beta1.ToolPattern{"current_time"},
	}
	return chat
}

func ticket(id string) v1beta1.ToolCall {
	return v1beta1.ToolCall{ID: id, Name: "open_ticket", Input: `{"title":"CNI down"}`,
		RequiresAction: v1beta1.RequiresClient}
}

func clock(id string) v1beta1.ToolCall {
	return v1beta1.ToolCall{ID: id, Name: "current_time", Input: `{}`, RequiresAction: v1beta1.RequiresApproval}
}

// resultsOf is what a client brings: ids of calls, each with what it yielded.
func resultsOf(ns, name string, outputs ...string) *v1beta1.ChatMessage {
	var results []v1beta1.ToolResult
	for i := 0; i < len(outputs); i += 2 {
		results = append(results, v1beta1.ToolResult{ID: outputs[i], Output: outputs[i+1]})
	}
	return chattest.In(ns, chattest.Brings("c", name, results...))
}

// decision is about a call of chat c as its status shows it, or of another one if there is none.
func decision(t *testing.T, ns, id string, d v1beta1.ApprovalDecision) *v1beta1.ToolApproval {
	t.Helper()
	a := chattest.In(ns, chattest.Decides("c", "", id, d))
	var chat v1beta1.Chat
	err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "c"}, &chat)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if required := chat.Status.RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.ID == id {
				a.Spec.Digest = call.Digest
			}
		}
	}
	a.GenerateName = "a-"
	return a
}

func waitForApproval(t *testing.T, a *v1beta1.ToolApproval, ready metav1.ConditionStatus,
	reason v1beta1.ConditionReason) {
	t.Helper()
	eventually(t, fmt.Sprintf("the approval is %s because of %s", ready, reason), func() bool {
		var now v1beta1.ToolApproval
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(a), &now))
		c := meta.FindStatusCondition(now.Status.Conditions, v1beta1.ConditionReady)
		return c != nil && c.Status == ready && v1beta1.ReasonOf(c) == reason
	})
}

func TestTurnContinuesAfterClientRunsTools(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1"), ticket("call_2")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	required := chatIn(t, ns, "c").Status.RequiresAction
	if len(required.ToolCalls) != 2 || required.ToolCalls[0].Input != `{"title":"CNI down"}` ||
		required.ToolCalls[0].Kind != v1beta1.RequiresClient || required.Message != "c-1-1" {
		t.Fatalf("required is %+v", required)
	}
	for name, outputs := range map[string][]string{
		"missing":    {"call_1", `{"number":1}`},
		"duplicate":  {"call_1", `1`, "call_1", `2`},
		"unexpected": {"call_1", `1`, "call_2", `2`, "call_3", `3`},
		"malformed":  {"call_1", `1`, "call_2", `{"number":`},
	} {
		create(t, resultsOf(ns, name, outputs...))
		waitForMessage(t, ns, name, metav1.ConditionFalse, v1beta1.ReasonResultsInvalid)
	}
	create(t, resultsOf(ns, "right", "call_2", `{"number":2}`, "call_1", `{"number":1}`))
	chat := assigned(t, ns, "c", 3, 1)
	got := chat.Status
	check.Equal(t, "history", []any{"right", 3, v1beta1.ActionGenerateAssistant},
		[]any{got.History.Head, got.History.Length, got.Generation.Action})
	answers(t, chat, chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-3-1", 4)
	waitForMessage(t, ns, "right", metav1.ConditionTrue, v1beta1.ReasonResultsAccepted)
	m := messageIn(t, ns, "right")
	check.Equal(t, "status of the results is", []any{v1beta1.MessageCommitted, 2, "c-1-1"},
		[]any{m.Status.State, *m.Status.Index, m.Status.Parent})
	create(t, resultsOf(ns, "late", "call_1", `1`))
	waitForMessage(t, ns, "late", metav1.ConditionFalse, v1beta1.ReasonResultsInvalid)
}

func TestCallsRunOnceTheyAreApproved(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(clock("call_1"), clock("call_2")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	yes, no := decision(t, ns, "call_1", v1beta1.DecisionApprove), decision(t, ns, "call_2", v1beta1.DecisionDeny)
	other := decision(t, ns, "call_9", v1beta1.DecisionApprove)
	create(t, other)
	waitForApproval(t, other, metav1.ConditionFalse, v1beta1.ReasonNotPending)
	create(t, yes)
	waitForApproval(t, yes, metav1.ConditionTrue, v1beta1.ReasonApplied)
	create(t, no)
	chat := assigned(t, ns, "c", 3, 1)
	if got := chat.Status; got.Generation.Action != v1beta1.ActionExecuteTools || len(got.Internal.Turn.Decisions) != 2 ||
		got.RequiresAction != nil {
		t.Errorf("generation %+v, turn %+v", got.Generation, got.Turn)
	}
	waitForApproval(t, no, metav1.ConditionTrue, v1beta1.ReasonApplied)
	answers(t, chat, chattest.Results("call_1"))
	answers(t, assigned(t, ns, "c", 4, 1), chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-4-1", 4)
}

func TestDecisionAboutSomethingElseIsRefused(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(clock("call_1")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	wrong := decision(t, ns, "call_1", v1beta1.DecisionApprove)
	right := wrong.DeepCopy()
	wrong.Spec.Digest = (&v1beta1.PendingToolCall{Name: "another"}).CallDigest()
	create(t, wrong)
	waitForApproval(t, wrong, metav1.ConditionFalse, v1beta1.ReasonDigestMismatch)
	create(t, right)
	waitForApproval(t, right, metav1.ConditionTrue, v1beta1.ReasonApplied)
	got := assigned(t, ns, "c", 3, 1).Status.Internal.Turn.Decisions
	if len(got) != 1 || got[0].Digest != right.Spec.Digest || got[0].At == nil {
		t.Errorf("the decisions are %+v", got)
	}
}

func TestDecisionWithoutAChatIsRefused(t *testing.T) {
	ns := parallel(t)
	a := decision(t, ns, "call_1", v1beta1.DecisionApprove)
	create(t, a)
	waitForApproval(t, a, metav1.ConditionFalse, v1beta1.ReasonNotPending)
}

func TestCallsThatNobodyAnswersInTimeAreCancelled(t *testing.T) {
	ns := parallel(t)
	chat := ticketChat(ns)
	chat.Spec.Limits = &v1beta1.ChatLimits{ActionDeadlineSeconds: new(int32(1))}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1")))
	chat = assigned(t, ns, "c", 3, 1)
	if got := chat.Status; got.Generation.Action != v1beta1.ActionGenerateAssistant || got.RequiresAction != nil {
		t.Errorf("generation %+v, required %+v", got.Generation, got.RequiresAction)
	}
}

func TestADeletedResultIsAskedForAgain(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	create(t, resultsOf(ns, "results", "call_1", `1`))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-3-1", 4)
	remove(t, messageIn(t, ns, "results"))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	if got := chatIn(t, ns, "c").Status; got.History.Head != "c-1-1" || len(got.RequiresAction.ToolCalls) != 1 {
		t.Errorf("history %+v, required %+v", got.History, got.RequiresAction)
	}
}
