// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/modelserver"
)

func idle(context.Context, func(string)) error { return nil }

// calling is a script of a model that makes one call.
func calling(tool, input string) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{
		{ToolCalls: []modelserver.ToolCall{{Name: tool, Arguments: json.RawMessage(input)}}}}}}}}
}

func TestCallThatCannotBeShownWholeIsRefused(t *testing.T) {
	t.Parallel()
	p := startPod(t, calling("execute", `{"command":"echo ls`+strings.Repeat(" ", 17000)+`; echo hidden > f"}`),
		func(_ *pod, o *runner.Options) { o.Tools = tools.NewRegistry(doing{"execute", idle}) })
	c := p.newChat("hides", func(s *v1alpha1.ChatSpec) {
		s.Tools = &v1alpha1.ChatTools{ToolPolicy: v1alpha1.ToolPolicy{Approval: []v1alpha1.ToolPattern{"execute"}}}
	})
	c.ask("hides-1", "Look.")
	reply := c.result()
	if call := reply.Spec.Parts[0].ToolCall; call.Refusal != v1alpha1.RefusalInputTooLarge || call.RequiresAction != "" ||
		reply.Spec.Generation.CallsRequiringAction != 0 {
		t.Fatalf("refused by %q, it requires %q", call.Refusal, call.RequiresAction)
	}
	c.commit(reply, v1alpha1.ActionExecuteTools)
	if got := c.result().Spec.Parts[0].ToolResult; !got.IsError ||
		!strings.Contains(got.Output, "bytes of input do not fit into the 16384 that people are shown") {
		t.Errorf("the result is %+v", got)
	}
}

func TestOnlyTheApprovedInputRuns(t *testing.T) {
	t.Parallel()
	p := startPod(t, calling("execute", `{"command": "ls"}`), func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(doing{"execute", idle})
	})
	for name, c := range map[string]struct {
		seen string
		runs bool
	}{"seen": {`{"command":"ls"}`, true}, "another": {`{"command":"rm"}`, false}} {
		chat := p.newChat("approves-"+name, func(s *v1alpha1.ChatSpec) {
			s.Tools = &v1alpha1.ChatTools{ToolPolicy: v1alpha1.ToolPolicy{Approval: []v1alpha1.ToolPattern{"execute"}}}
		})
		chat.ask(chat.chat.Name+"-1", "Look.")
		reply := chat.result()
		seen := *reply.Spec.Parts[0].ToolCall
		seen.Input = c.seen
		chat.commit(reply, "")
		chat.write(func(s *v1alpha1.ChatStatus) {
			s.Internal.Turn.Decisions = []v1alpha1.ToolDecision{{ID: seen.ID, Decision: v1alpha1.DecisionApprove, Approval: "a",
				By: "anna", Digest: approval.Of(&seen).Digest}}
			s.Generation = chat.assignment(v1alpha1.ActionExecuteTools, 1)
		})
		results := chat.result()
		if got := results.Spec.Parts[0].ToolResult; (got.Output == "done") != c.runs || got.IsError == c.runs {
			t.Errorf("%s: the result is %+v", name, got)
		}
		if got := results.Spec.Generation.Decisions; len(got) != 1 || got[0].By != "anna" {
			t.Errorf("%s: the decisions are %+v", name, got)
		}
	}
}

func TestSubChatKeepsTheRulesOfTheWorkspace(t *testing.T) {
	t.Parallel()
	var root *conversation
	p := startPod(t, calling("execute", `{}`), func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(with{tools.Traits{NeedsWorkspace: true}, doing{"execute", idle}}, doing{"look", idle})
		o.WorkspaceOwner = func(context.Context, *v1alpha1.Chat) (*v1alpha1.Chat, error) { return root.chat, nil }
	})
	root = p.newChat("root", nil)
	class := root.has("coder", func(s *v1alpha1.ChatClassSpec) {
		s.Restrictions = &v1alpha1.ChatRestrictions{Tools: &v1alpha1.ToolPolicy{Deny: []v1alpha1.ToolPattern{"execute"}}}
	})
	sub := p.newChat("sub", func(s *v1alpha1.ChatSpec) { s.ParentRef = &v1alpha1.ChatReference{Name: "root"} })
	sub.write(func(s *v1alpha1.ChatStatus) { s.Internal.Attempt.HasWorkspace = true })
	sub.ask("sub-1", "Run it.")
	reply := sub.result()
	if call := reply.Spec.Parts[0].ToolCall; call.Refusal != v1alpha1.RefusalNotAllowed {
		t.Errorf("the call is refused by %q", call.Refusal)
	}
	if body := string(p.models.Requests()[0].Body); strings.Contains(body, `"name":"execute"`) ||
		!strings.Contains(body, `"name":"look"`) {
		t.Errorf("the model was offered %.600s", body)
	}
	sub.commit(reply, v1alpha1.ActionExecuteTools)
	if got := sub.result().Spec.Parts[0].ToolResult; !got.IsError {
		t.Errorf("class %s denies the call, and its result is %+v", class.Name, got)
	}
}
