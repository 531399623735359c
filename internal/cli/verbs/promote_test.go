// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// queue lets a message wait in the chat's queue.
func (p *person) queue() *v1beta1.ChatMessage {
	p.t.Helper()
	p.run("send", "triage", "--no-follow", "and then?").succeeds()
	m := p.sent()
	p.chat.Status.Phase = v1beta1.ChatRunning
	p.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: m.Name}}
	p.updateStatus(p.chat)
	return m
}

// promoted waits until the message was told to cut in.
func (p *person) promoted(m *v1beta1.ChatMessage) {
	p.t.Helper()
	eventually(p.t, "the message interrupts", func() bool {
		p.get(m)
		return m.Spec.WhenBusy == v1beta1.WhenBusyInterrupt
	})
}

func TestAQueuedMessageCanBePromoted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.queue()
	c := p.run("promote", "triage", m.Name)
	p.promoted(m)
	check.Equal(t, "content", "and then?", m.Spec.Content)
	p.chat.Status.Queue = nil
	p.updateStatus(p.chat)
	p.begin(m)
	p.settle(m, ready(metav1.ConditionUnknown, v1beta1.ReasonAnswering, ""))
	c.shows("chatmessage.parley.dev/" + m.Name + " promoted: Committed\n")
}

func TestOnlyAMessageThatWaitsCanBePromoted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.run("promote", "triage", "other").fails(": none does")
	m := p.queue()
	p.run("promote", "triage", "other").fails("which is busy: there is " + m.Name)
	p.run("promote", "triage", m.Name, "--wait=false").shows("chatmessage.parley.dev/" + m.Name + " promoted\n")
	p.promoted(m)
}

func TestAnswerGivesTheRequestedInput(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	p.chat.Status.RequiresAction.ToolCalls = append(p.chat.Status.RequiresAction.ToolCalls, v1beta1.PendingToolCall{
		ID: "call_4", Name: "s__book", Kind: v1beta1.RequiresApproval, ApprovalCause: v1beta1.ApprovalInputRequired,
		InputRequests: `{"who":{"method":"elicitation/create","params":{"message":"Who books?",` +
			`"requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","description":"In full."},` +
			`"class":{"type":"string","enum":["first","second"]},"on":{"type":"array","items":{"anyOf":[{"const":"mo","title":"Monday"}]}}}}}}}`,
	}, v1beta1.PendingToolCall{
		ID: "call_5", Name: "k8s_apply", Kind: v1beta1.RequiresApproval, ApprovalCause: v1beta1.ApprovalReviewRequired,
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
		check.Contains(t, listed.out.String(), want)
	}
	seen := p.chat.Status.RequiresAction.ToolCalls[3].Digest
	answer := p.run("answer", "triage", `call_4={"name":"Ada"}`, "--digest", seen)
	a := p.approval()
	if want := (v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: "triage"}, ToolCallID: "call_4",
		Decision: v1beta1.DecisionApprove, Content: `{"name":"Ada"}`,
		Digest: p.chat.Status.RequiresAction.ToolCalls[3].Digest}); a.Spec != want {
		t.Errorf("created %+v", a.Spec)
	}
	a.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonApplied, "")
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
