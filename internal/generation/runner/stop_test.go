// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/modelserver"
)

func TestTheFirstToolThatSucceedsAndEndsTheTurnIsNoted(t *testing.T) {
	t.Parallel()
	p := startPod(t, usesTool, nil)
	for name, c := range map[string]struct {
		stopAfter []string
		approval  []v1alpha1.ToolPattern
		decision  v1alpha1.ApprovalDecision
		want      string
	}{
		"none":                     {},
		"its-own":                  {stopAfter: []string{"other", "current_time"}, want: "current_time"},
		"another":                  {stopAfter: []string{"other"}},
		"one-that-fails":           {stopAfter: []string{"launch"}},
		"one-that-fails-and-other": {stopAfter: []string{"launch", "current_time"}, want: "current_time"},
		"approved": {stopAfter: []string{"current_time"}, approval: []v1alpha1.ToolPattern{"current_time"},
			decision: v1alpha1.DecisionApprove, want: "current_time"},
		"denied": {stopAfter: []string{"current_time"}, approval: []v1alpha1.ToolPattern{"current_time"}, decision: v1alpha1.DecisionDeny},
	} {
		t.Run(name, func(t *testing.T) {
			chat := p.newChat(name, func(s *v1alpha1.ChatSpec) {
				s.Tools = &v1alpha1.ChatTools{StopAfter: c.stopAfter, Approval: c.approval}
			})
			chat.ask(name+"-prompt", "What time is it?")
			calls := chat.result()
			if got := calls.Spec.Generation.StoppedBy; got != "" {
				t.Errorf("the reply says that %q ends the turn", got)
			}
			if c.decision != "" {
				chat.write(func(s *v1alpha1.ChatStatus) {
					s.Internal.Turn.Decisions = []v1alpha1.ToolDecision{{ID: calls.Spec.Parts[0].ToolCall.ID, Decision: c.decision,
						Approval: "a", Digest: approval.Of(calls.Spec.Parts[0].ToolCall).Digest}}
				})
			}
			chat.commit(calls, v1alpha1.ActionExecuteTools)
			results := chat.result()
			if got := results.Spec.Generation.StoppedBy; got != c.want || len(results.Spec.Parts) != 2 {
				t.Errorf("%q ends the turn, of %d results", got, len(results.Spec.Parts))
			}
		})
	}
}

// doing is a tool of that name that does what it says.
type doing struct {
	name string
	run  func(ctx context.Context, show func(string)) error
}

func (d doing) Definition() tools.Definition {
	return tools.Definition{Name: d.name, InputSchema: map[string]any{"type": "object"}}
}

func (d doing) Run(ctx context.Context, call tools.Call) (string, error) {
	return "done", d.run(ctx, call.Show)
}

// with is a tool with these traits.
type with struct {
	tools.Traits
	tools.Tool
}

func (w with) Definition() tools.Definition {
	d := w.Tool.Definition()
	d.Traits = w.Traits
	return d
}

func TestAnInterruptedBatchDoesNotSayThatAToolEndsTheTurn(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	p := startPod(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{
		{ToolCalls: []modelserver.ToolCall{{Name: "plan", Arguments: []byte(`{}`)}, {Name: "hang", Arguments: []byte(`{}`)}}},
	}}}}}, func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(
			doing{"plan", func(context.Context, func(string)) error { return nil }},
			doing{"hang", func(ctx context.Context, _ func(string)) error {
				close(begun)
				<-ctx.Done()
				return ctx.Err()
			}},
		)
	})
	c := p.newChat("plans",
		func(s *v1alpha1.ChatSpec) { s.Tools = &v1alpha1.ChatTools{StopAfter: []string{"plan", "hang"}} })
	c.ask("plans-prompt", "Make a plan.")
	c.commit(c.result(), v1alpha1.ActionExecuteTools)
	<-begun
	c.write(interrupt)
	results := c.result()
	g, parts := results.Spec.Generation, results.Spec.Parts
	if g.Outcome != v1alpha1.OutcomeInterrupted || g.StoppedBy != "" || parts[0].ToolResult.IsError ||
		!parts[1].ToolResult.IsError {
		t.Errorf("the outcome is %s, stopped by %q, with %+v and %+v", g.Outcome, g.StoppedBy, parts[0].ToolResult,
			parts[1].ToolResult)
	}
}

func TestEachWireFormGoesOnAfterATurnThatAToolHasEnded(t *testing.T) {
	t.Parallel()
	for _, w := range append(gateways(), wireForms...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			p := startWired(t, w, modelserver.Script{Rules: []modelserver.Rule{
				{
					Match: modelserver.Match{LastUserText: "What time is it?", ToolResults: new(0)},
					Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: []modelserver.ToolCall{clockCall}}}},
				},
				{Match: modelserver.Match{LastUserText: "And in words?"},
					Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Nine.")}}},
			}})
			c := p.newChat("clock",
				func(s *v1alpha1.ChatSpec) { s.Tools = &v1alpha1.ChatTools{StopAfter: []string{"current_time"}} })
			c.ask("clock-1", "What time is it?")
			c.commit(c.result(), v1alpha1.ActionExecuteTools)
			results := c.result()
			if got := results.Spec.Generation.StoppedBy; got != "current_time" {
				t.Fatalf("%q ends the turn: %+v", got, results.Spec)
			}
			c.commit(results, "")
			c.ask("clock-2", "And in words?")
			answer := c.result()
			if answer.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted || textOf(t, answer) != "Nine." {
				t.Fatalf("the model said %q: %+v", textOf(t, answer), answer.Spec.Generation.Error)
			}
			all := p.models.Requests()
			if body := string(all[len(all)-1].Body); len(all) != 2 || !strings.Contains(body, tokyo) ||
				!strings.Contains(body, "And in words?") {
				t.Errorf("%d requests were sent, the last one is %s", len(all), body)
			}
			p.nothingLeft()
		})
	}
}
