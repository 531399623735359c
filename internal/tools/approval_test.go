// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func calling(calls ...v1beta1.ToolCall) v1beta1.ChatMessage {
	return *chattest.Generated("", v1beta1.RoleAssistant, chattest.CallsOf(calls...))
}

// Security (a hostile workspace): can output any text to the model and people; the resulting calls wait for approval
// like others.
//
// Security (a hostile skill or AGENTS.md): can output any text to the model, when the model reads it; the resulting
// calls are the model's, and wait for approval like others.
func TestOnlyApprovedCallsRun(t *testing.T) {
	needsApproval := func(id, input string) v1beta1.ToolCall {
		return v1beta1.ToolCall{ID: id, RequiresAction: v1beta1.RequiresApproval, Input: input}
	}
	history := []v1beta1.ChatMessage{
		calling(v1beta1.ToolCall{ID: "old"}), *chattest.Generated("", v1beta1.RoleTool, chattest.Results("old")),
		calling(v1beta1.ToolCall{ID: "own"}, v1beta1.ToolCall{ID: "done"},
			v1beta1.ToolCall{ID: "provider", ProviderExecuted: true},
			v1beta1.ToolCall{ID: "client", RequiresAction: v1beta1.RequiresClient}, needsApproval("approved", ""),
			needsApproval("denied", ""), needsApproval("undecided", ""), needsApproval("unseen", `{"command":"rm"}`)),
		*chattest.Generated("", v1beta1.RoleTool, chattest.Results("done")),
	}
	history[2].Spec.Generation.HistoryVersion = 5
	seen := approval.Of(new(needsApproval("approved", ""))).Digest
	chat := &v1beta1.Chat{}
	decisions := []v1beta1.ToolDecision{
		{ID: "approved", Decision: v1beta1.DecisionApprove, Digest: seen, By: "anna", Content: "{}"},
		{ID: "denied", Decision: v1beta1.DecisionDeny, Comment: "too late"},
		{ID: "unseen", Decision: v1beta1.DecisionApprove, Digest: seen},
	}
	chat.Status.Internal.Turn.Decisions = slices.Clone(decisions)
	decisions[0].Content = ""
	check.Equal(t, "batch", &tools.Batch{Chat: chat, Reply: 5, Decisions: decisions,
		Calls: []v1beta1.ToolCall{{ID: "own"}, needsApproval("approved", "")},
		Denied: []v1beta1.ToolResult{
			{ID: "denied", Output: "A person denied this call, so it was not run. They said: too late", IsError: true},
			{ID: "unseen",
				Output: "The call was not run: it is not the call that a person has approved. Make it again if it is " +
					"still needed.", IsError: true}}}, tools.SplitByApproval(chat, history))
}

func TestAnAnswerComesWithTheCallThatAsked(t *testing.T) {
	question := v1beta1.ToolQuestion{ID: "1", Name: "k8s_apply", Proposal: "Scale it.", ToolState: "s"}
	asks := *chattest.Generated("", v1beta1.RoleTool)
	asks.Spec.Generation.Questions = []v1beta1.ToolQuestion{question}
	call, seen := calling(v1beta1.ToolCall{ID: "1", Name: "k8s_apply"}), approval.OfQuestion(&question).Digest
	asked := tools.Question{Proposal: "Scale it.", State: "s"}
	for name, c := range map[string]struct {
		later    []v1beta1.ChatMessage
		decision v1beta1.ToolDecision
		want     map[string]tools.Answer
	}{
		"approved": {nil, v1beta1.ToolDecision{Decision: v1beta1.DecisionApprove, Digest: seen},
			map[string]tools.Answer{"1": {Question: asked, Given: true}}},
		"denied": {nil, v1beta1.ToolDecision{Decision: v1beta1.DecisionDeny, Comment: "no"},
			map[string]tools.Answer{"1": {Question: asked, Comment: "no"}}},
		"another proposal approved": {nil, v1beta1.ToolDecision{Decision: v1beta1.DecisionApprove, Digest: "other"},
			map[string]tools.Answer{"1": {Question: asked}}},
		"a question of an earlier reply": {[]v1beta1.ChatMessage{call},
			v1beta1.ToolDecision{Decision: v1beta1.DecisionApprove, Digest: seen}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1beta1.Chat{}
			c.decision.ID = "1"
			chat.Status.Internal.Turn.Decisions = []v1beta1.ToolDecision{c.decision}
			b := tools.SplitByApproval(chat, append([]v1beta1.ChatMessage{call, asks}, c.later...))
			check.Equal(t, "answers", c.want, b.Answers)
			check.Equal(t, "number of calls", 1, len(b.Calls))
		})
	}
}

func TestAClientsToolsAreOfferedWithTheirSchemas(t *testing.T) {
	spec := &v1beta1.ChatTools{
		Client: []v1beta1.ClientTool{
			{Name: "open_ticket", Description: "Opens a ticket.",
				InputSchema: &runtime.RawExtension{Raw: []byte(`{"type":"object","required":["title"]}`)}},
			{Name: "plain"},
		},
		Approval: []v1beta1.ToolPattern{"current_time", "launch*", "plain"},
	}
	offered := tools.OfClient(spec)
	check.Equal(t, "offered tools", []tools.Definition{
		{Name: "open_ticket", Description: "Opens a ticket.",
			InputSchema: map[string]any{"type": "object", "required": []any{"title"}}},
		{Name: "plain", InputSchema: map[string]any{"type": "object"}},
	}, offered, cmpopts.IgnoreUnexported(tools.Definition{}))
	for name, want := range map[string]v1beta1.RequiredAction{
		"open_ticket": v1beta1.RequiresClient, "plain": v1beta1.RequiresClient, "current_time": v1beta1.RequiresApproval,
		"launch_rocket": v1beta1.RequiresApproval, "other": "",
	} {
		check.Equal(t, name, want, tools.RequiresAction(spec, name))
	}
	spec.Deny = []v1beta1.ToolPattern{"plain", "current_time"}
	if offered := tools.OfClient(spec); len(offered) != 1 || tools.RequiresAction(spec, "plain") != "" ||
		tools.RequiresAction(spec, "current_time") != "" {
		t.Errorf("a tool that is denied is offered, or waited for: %+v", offered)
	}
	if tools.OfClient(nil) != nil || tools.RequiresAction(nil, "x") != "" {
		t.Error("a chat that says nothing about tools has a client's")
	}
}

func TestSchemasOfClientToolsAreChecked(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"n":{"maximum":9007199254740993}}}`: "",
		`{"type":"array"}`:                  "type must be object",
		`{"properties":{"n":{"type":"x"}}}`: "/properties/n/type",
	} {
		client := v1beta1.ClientTool{Name: "open_ticket", InputSchema: &runtime.RawExtension{Raw: []byte(schema)}}
		tool := tools.OfClient(&v1beta1.ChatTools{Client: []v1beta1.ClientTool{client}})[0]
		err := tool.SchemaError()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
		if sent, err := json.Marshal(tool.InputSchema); want == "" &&
			(err != nil || !strings.Contains(string(sent), "9007199254740993")) {
			t.Errorf("the model is sent %s, %v", sent, err)
		}
	}
}
