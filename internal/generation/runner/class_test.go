// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

func TestClassesOfTheChatShapeTheCall(t *testing.T) {
	t.Parallel()
	p := startPod(t, usesTool, nil)
	c := p.newChat("classed", func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be brief." })
	c.has("coder", func(s *v1alpha1.ChatClassSpec) {
		s.Preamble = "Be safe."
		s.Restrictions = &v1alpha1.ChatRestrictions{Tools: &v1alpha1.ToolPolicy{
			Allow: []v1alpha1.ToolPattern{"current_*"}, Approval: []v1alpha1.ToolPattern{"current_time"},
		}}
	})
	everybody := chattest.In(c.ns, chattest.Class("everybody", func(s *v1alpha1.ChatClassSpec) {
		s.Default, s.NamespacePreamble, s.Preamble = true, "Be lawful.", "Of another class."
	}))
	create(t, everybody)
	c.config = "captioned"
	c.ask("classed-1", "What time is it?", func(s *v1alpha1.ChatStatus) {
		s.NamespaceClass = &v1alpha1.ChatClassInForce{Name: everybody.Name, UID: string(everybody.UID),
			Generation: everybody.Generation}
	})
	reply := c.result()
	check.Equal(t, "the action", v1alpha1.RequiresApproval, reply.Spec.Parts[0].ToolCall.RequiresAction)
	p.eventually("both calls were made", func() bool { return len(p.models.Requests()) == 2 })
	bodies := string(p.models.Requests()[0].Body) + string(p.models.Requests()[1].Body)
	check.Contains(t, bodies, `"Be lawful.\n\nBe safe.\n\nBe brief.`, `"Be lawful.\n\nWrite the title`, `"name":"current_time"`)
	check.Lacks(t, bodies, `"name":"wait_agent"`, "Of another class")
}

func TestNothingIsDoneWithoutTheChatsClass(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	c := p.newChat("orphaned", nil)
	class := c.has("gone", func(*v1alpha1.ChatClassSpec) {})
	check.OK(t, cluster.Client.Delete(t.Context(), class, client.Preconditions{UID: &class.UID}))
	c.write(func(s *v1alpha1.ChatStatus) { s.ChatClass.Generation++ }) // Also where the watch has not told yet.
	c.ask("orphaned-1", "hello")
	e := c.ended("Failed ChatClassNotFound").Spec.Generation.Error
	check.Equal(t, "the error", []any{"ChatClass gone no longer exists", true}, []any{e.Message, e.Retryable})
	check.Equal(t, "calls", 0, len(p.models.Requests()))
}

// doing is a tool of that name that does nothing.
type doing struct {
	name string
	tools.Traits
}

func (d doing) Definition() tools.Definition {
	return tools.Definition{Name: d.name, InputSchema: map[string]any{"type": "object"}, Traits: d.Traits}
}

func (doing) Run(context.Context, tools.Call) (string, error) { return "done", nil }

func TestSubChatKeepsTheRulesOfTheWorkspace(t *testing.T) {
	t.Parallel()
	var root *conversation
	p := startPod(t, reply(modelserver.Call("execute", `{}`)), func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(doing{"execute", tools.Traits{NeedsWorkspace: true}}, doing{name: "look"})
		o.WorkspaceOwner = func(context.Context, *v1alpha1.Chat) (*v1alpha1.Chat, error) { return root.chat, nil }
		o.AdvisorUses = new(int32(0))
	})
	root = p.newChat("root", nil)
	root.has("coder", func(s *v1alpha1.ChatClassSpec) {
		s.Restrictions = &v1alpha1.ChatRestrictions{Tools: &v1alpha1.ToolPolicy{Deny: []v1alpha1.ToolPattern{"execute"}}}
	})
	sub := p.newChat("sub", func(s *v1alpha1.ChatSpec) { s.ParentRef = &v1alpha1.ChatReference{Name: "root"} })
	sub.ask("sub-1", "Run it.", func(s *v1alpha1.ChatStatus) { s.Internal.Attempt.HasWorkspace = true })
	reply := sub.result()
	check.Equal(t, "the refusal", v1alpha1.RefusalNotAllowed, reply.Spec.Parts[0].ToolCall.Refusal)
	check.Lacks(t, p.lastBody(), `"name":"execute"`)
	check.Contains(t, p.lastBody(), `"name":"look"`)
	sub.commit(reply, v1alpha1.ActionExecuteTools)
	check.Equal(t, "the call failed", true, sub.result().Spec.Parts[0].ToolResult.IsError)
}
