// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/tools"
)

func called(calls ...v1alpha1.ToolCall) v1alpha1.ChatMessage {
	m := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleAssistant}}
	for i := range calls {
		m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{Type: v1alpha1.PartToolCall, ToolCall: &calls[i]})
	}
	return m
}

func answered(ids ...string) v1alpha1.ChatMessage {
	m := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleTool}}
	for _, id := range ids {
		m.Spec.Parts = append(m.Spec.Parts,
			v1alpha1.MessagePart{Type: v1alpha1.PartToolResult, ToolResult: &v1alpha1.ToolResult{ID: id}})
	}
	return m
}

func TestOnlyApprovedCallsRun(t *testing.T) {
	history := []v1alpha1.ChatMessage{
		called(v1alpha1.ToolCall{ID: "old"}), answered("old"),
		called(
			v1alpha1.ToolCall{ID: "own"}, v1alpha1.ToolCall{ID: "done"},
			v1alpha1.ToolCall{ID: "provider", ProviderExecuted: true},
			v1alpha1.ToolCall{ID: "client", RequiresAction: v1alpha1.RequiresClient},
			v1alpha1.ToolCall{ID: "approved", RequiresAction: v1alpha1.RequiresApproval},
			v1alpha1.ToolCall{ID: "denied", RequiresAction: v1alpha1.RequiresApproval},
			v1alpha1.ToolCall{ID: "undecided", RequiresAction: v1alpha1.RequiresApproval},
			v1alpha1.ToolCall{ID: "unseen", RequiresAction: v1alpha1.RequiresApproval, Input: `{"command":"rm"}`},
		),
		answered("done"),
	}
	history[2].Spec.Generation = &v1alpha1.MessageGeneration{HistoryVersion: 5}
	seen := approval.Of(&v1alpha1.ToolCall{ID: "approved", RequiresAction: v1alpha1.RequiresApproval}).Digest
	chat := &v1alpha1.Chat{}
	chat.Status.Internal.Turn.Decisions = []v1alpha1.ToolDecision{
		{ID: "approved", Decision: v1alpha1.DecisionApprove, Digest: seen, By: "anna", Content: "{}"},
		{ID: "unseen", Decision: v1alpha1.DecisionApprove, Digest: seen},
		{ID: "denied", Decision: v1alpha1.DecisionDeny, Comment: "too late"},
	}
	due := tools.SplitByApproval(chat, history)
	if len(due.Calls) != 2 || due.Calls[0].ID != "own" || due.Calls[1].ID != "approved" {
		t.Errorf("to run are %+v", due.Calls)
	}
	if due.Reply != 5 {
		t.Errorf("the reply was made for version %d", due.Reply)
	}
	if len(due.Decisions) != 3 || due.Decisions[0].By != "anna" || due.Decisions[0].Content != "" {
		t.Errorf("decided is %+v", due.Decisions)
	}
	if len(due.Denied) != 2 || due.Denied[1].ID != "unseen" || !due.Denied[1].IsError ||
		!strings.HasPrefix(due.Denied[1].Output, "The call was not run: it is not the call that a person has approved.") {
		t.Errorf("not run are %+v", due.Denied)
	}
	if due.Denied[0].ID != "denied" || !due.Denied[0].IsError ||
		due.Denied[0].Output != "A person denied this call, so it was not run. They said: too late" {
		t.Errorf("denied are %+v", due.Denied)
	}
}

func TestAnAnswerComesWithTheCallThatAsked(t *testing.T) {
	asks := answered()
	question := v1alpha1.ToolQuestion{ID: "1", Name: "k8s_apply", Proposal: "Scale it.", ToolState: "s"}
	asks.Spec.Generation = &v1alpha1.MessageGeneration{Questions: []v1alpha1.ToolQuestion{question}}
	call := called(v1alpha1.ToolCall{ID: "1", Name: "k8s_apply"})
	seen := approval.OfQuestion(&question).Digest
	for name, c := range map[string]struct {
		history  []v1alpha1.ChatMessage
		decision v1alpha1.ToolDecision
		want     map[string]tools.Answer
	}{
		"approved": {[]v1alpha1.ChatMessage{call, asks},
			v1alpha1.ToolDecision{Decision: v1alpha1.DecisionApprove, Digest: seen},
			map[string]tools.Answer{"1": {Question: tools.Question{Proposal: "Scale it.", State: "s"}, Given: true}}},
		"denied": {[]v1alpha1.ChatMessage{call, asks}, v1alpha1.ToolDecision{Decision: v1alpha1.DecisionDeny, Comment: "no"},
			map[string]tools.Answer{"1": {Question: tools.Question{Proposal: "Scale it.", State: "s"}, Comment: "no"}}},
		"another proposal approved": {[]v1alpha1.ChatMessage{call, asks},
			v1alpha1.ToolDecision{Decision: v1alpha1.DecisionApprove, Digest: "other"},
			map[string]tools.Answer{"1": {Question: tools.Question{Proposal: "Scale it.", State: "s"}}}},
		"a question of an earlier reply": {[]v1alpha1.ChatMessage{call, asks, call},
			v1alpha1.ToolDecision{Decision: v1alpha1.DecisionApprove, Digest: seen}, map[string]tools.Answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1alpha1.Chat{}
			c.decision.ID = "1"
			chat.Status.Internal.Turn.Decisions = []v1alpha1.ToolDecision{c.decision}
			b := tools.SplitByApproval(chat, c.history)
			if diff := cmp.Diff(c.want, b.Answers); diff != "" || len(b.Calls) != 1 {
				t.Errorf("%d calls, -want +got\n%s", len(b.Calls), diff)
			}
		})
	}
}

func TestAClientsToolsAreOfferedWithTheirSchemas(t *testing.T) {
	spec := &v1alpha1.ChatTools{
		Client: []v1alpha1.ClientTool{
			{Name: "open_ticket", Description: "Opens a ticket.",
				InputSchema: &runtime.RawExtension{Raw: []byte(`{"type":"object","required":["title"]}`)}},
			{Name: "plain"},
		},
		Approval: []v1alpha1.ToolPattern{"current_time", "launch*", "plain"},
	}
	offered := tools.OfClient(spec)
	if len(offered) != 2 || offered[0].Name != "open_ticket" || offered[0].Description != "Opens a ticket." ||
		offered[0].InputSchema["required"] == nil {
		t.Errorf("offered are %+v", offered)
	}
	if offered[1].InputSchema["type"] != "object" {
		t.Errorf("the schema of a tool without one is %v", offered[1].InputSchema)
	}
	for name, want := range map[string]v1alpha1.RequiredAction{
		"open_ticket": v1alpha1.RequiresClient, "plain": v1alpha1.RequiresClient, "current_time": v1alpha1.RequiresApproval,
		"launch_rocket": v1alpha1.RequiresApproval, "other": "",
	} {
		if got := tools.RequiresAction(spec, name); got != want {
			t.Errorf("a call of %s requires %q", name, got)
		}
	}
	spec.Deny = []v1alpha1.ToolPattern{"plain", "current_time"}
	if offered := tools.OfClient(spec); len(offered) != 1 || tools.RequiresAction(spec, "plain") != "" ||
		tools.RequiresAction(spec, "current_time") != "" {
		t.Errorf("a tool that is denied is offered, or waited for: %+v", offered)
	}
	if tools.OfClient(nil) != nil || tools.RequiresAction(nil, "x") != "" {
		t.Error("a chat that says nothing about tools has a client's")
	}
}
