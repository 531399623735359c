// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

func TestAnswerGivesTheRequestedInput(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	p.chat.Status.RequiresAction.ToolCalls = append(p.chat.Status.RequiresAction.ToolCalls, v1alpha1.PendingToolCall{
		ID: "call_4", Name: "s__book", Kind: v1alpha1.RequiresApproval, ApprovalCause: v1alpha1.ApprovalInputRequired,
		InputRequests: `{"who":{"method":"elicitation/create","params":{"message":"Who books?",` +
			`"requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","description":"In full."},` +
			`"class":{"type":"string","enum":["first","second"]},"on":{"type":"array","items":{"anyOf":[{"const":"mo","title":"Monday"}]}}}}}}}`,
	}, v1alpha1.PendingToolCall{
		ID: "call_5", Name: "k8s_apply", Kind: v1alpha1.RequiresApproval, ApprovalCause: v1alpha1.ApprovalReviewRequired,
		Proposal: "-  replicas: 1\n+  replicas: 2\x1b[2J\n",
	})
	digest(p.chat)
	p.updateStatus(p.chat)
	listed := p.run("calls", "triage")
	listed.succeeds()
	for _, want := range []string{
		"Approval (asks for input)",
		"\ncall_4 (s__book):\n      | Who books?\n      |   class (one of first, second, optional)\n" +
			"      |   name (string): In full.\n      |   on (some of \"mo\" (Monday), optional)\n",
		"\ncall_5 (k8s_apply):\n      | -  replicas: 1\n      | +  replicas: 2\\u001b[2J\n",
	} {
		if !strings.Contains(listed.out.String(), want) {
			t.Errorf("listed %s\nwithout %s", listed.out.String(), want)
		}
	}
	seen := p.chat.Status.RequiresAction.ToolCalls[3].Digest
	answer := p.run("answer", "triage", `call_4={"name":"Ada"}`, "--digest", seen)
	a := p.approval()
	if want := (v1alpha1.ToolApprovalSpec{ChatRef: v1alpha1.ChatReference{Name: "triage"}, ToolCallID: "call_4",
		Decision: v1alpha1.DecisionApprove, Content: `{"name":"Ada"}`,
		Digest: p.chat.Status.RequiresAction.ToolCalls[3].Digest}); a.Spec != want {
		t.Errorf("created %+v", a.Spec)
	}
	a.Status.Conditions = ready(metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
	p.updateStatus(a)
	answer.succeeds()
	for want, args := range map[string][]string{
		"is not a JSON object": {"answer", "triage", "call_4=Ada"},
		"--digest is required": {"answer", "triage", `call_4={"name":"Ada"}`},
		"answer it alone":      {"answer", "triage", "call_4={}", "call_1=1"},
	} {
		p.run(args...).fails(want)
	}
}
