// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"strings"
	"testing"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/modelserver"
)

// callsTwo is a model that calls the tools fast and slow in one reply.
var callsTwo = modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{
	{ToolCalls: []modelserver.ToolCall{{Name: "fast", Arguments: []byte(`{}`)}, {Name: "slow", Arguments: []byte(`{}`)}}},
}}}}}

// shown are the parts of the attempt under way, in their order.
func (c *conversation) shown() (all []parts.Part) {
	frames, err := c.relay.SoFar(c.t.Context(), c.fence())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, frame := range frames {
		all = append(all, frame.Part)
	}
	return all
}

func TestTheResultOfACallIsShownWhenItEndsAndNotWithTheLastOfItsBatch(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	p := startPod(t, callsTwo, func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(
			doing{"fast", func(context.Context, func(string)) error { return nil }},
			doing{"slow", func(_ context.Context, show func(string)) error {
				show("half of it")
				<-release
				return nil
			}},
		)
	})
	c := p.newChat("batch", nil)
	c.ask("batch-prompt", "Do both.")
	calls := c.result()
	for _, part := range calls.Spec.Parts {
		if part.StartedAt.IsZero() {
			t.Errorf("call %s does not say when it was made", part.ToolCall.Name)
		}
	}
	c.commit(calls, v1alpha1.ActionExecuteTools)
	c.eventually("the result of the fast call and what the slow one says are shown", func() bool {
		result, output := false, false
		for _, part := range c.shown() {
			result = result || part.Type == parts.ToolResult && part.Name == "fast" && part.Text == "done" && !part.At.IsZero()
			output = output || part.Type == parts.ToolOutput && part.Name == "slow" && part.Text == "half of it"
		}
		return result && output
	})
	if c.message(c.resultName()) != nil {
		t.Fatal("the batch has ended")
	}
	close(release)
	answer := c.result()
	seen := map[parts.Type]int{}
	for _, part := range c.shown() {
		seen[part.Type]++
	}
	if seen[parts.ToolStart] != 2 || seen[parts.ToolResult] != 2 {
		t.Errorf("shown are %v", seen)
	}
	for _, part := range answer.Spec.Parts {
		if part.StartedAt.IsZero() || part.FinishedAt.Time.Before(part.StartedAt.Time) {
			t.Errorf("call %s ran from %s to %s", part.ToolResult.Name, part.StartedAt, part.FinishedAt)
		}
	}
}

// crashed is a chat whose batch of two calls was begun by a former life of the pod, which left these parts behind.
func crashed(t *testing.T, left func(fast, slow v1alpha1.ToolCall) []parts.Part) *conversation {
	t.Helper()
	relays := socketRelay(t)
	p := startPod(t, callsTwo, func(_ *pod, o *runner.Options) {
		o.Relay = relays("second-life")
		o.Tools = tools.NewRegistry(
			doing{"fast",
				func(context.Context, func(string)) error { t.Error("a call that had ended was run again"); return nil }},
			doing{"slow", func(context.Context, func(string)) error {
				t.Error("a call whose result is lost was run again")
				return nil
			}},
		)
	})
	c := p.newChat("crashed", nil)
	c.ask("crashed-prompt", "Do both.")
	calls := c.result()
	opened, err := relays("first-life").
		Open(t.Context(), fence.Fence{ChatUID: string(c.chat.UID), HistoryVersion: 2, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range left(*calls.Spec.Parts[0].ToolCall, *calls.Spec.Parts[1].ToolCall) {
		opened.Publish("Tool", part)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.commit(calls, v1alpha1.ActionExecuteTools)
	return c
}

func TestResultsThatWereThereWhenTheGeneratorCrashedAreKept(t *testing.T) {
	c := crashed(t, func(fast, slow v1alpha1.ToolCall) []parts.Part {
		return []parts.Part{
			{Type: parts.ToolStart, ID: slow.ID, Name: slow.Name},
			{Type: parts.ToolStart, ID: fast.ID, Name: fast.Name},
			{Type: parts.ToolResult, ID: fast.ID, Name: fast.Name, Text: "fast it was"},
		}
	})
	m := c.result()
	if m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted || m.Spec.Role != v1alpha1.RoleTool ||
		len(m.Spec.Parts) != 2 {
		t.Fatalf("got %+v", m.Spec)
	}
	fast, slow := m.Spec.Parts[0].ToolResult, m.Spec.Parts[1].ToolResult
	if fast.IsError || fast.Output != "fast it was" {
		t.Errorf("the result that was there is %+v", fast)
	}
	if !slow.IsError || !strings.Contains(slow.Output, "may have had an effect") {
		t.Errorf("the result that is lost is %+v", slow)
	}
}

func TestABatchOfWhichNoCallHadEndedWhenTheGeneratorCrashedIsLost(t *testing.T) {
	c := crashed(t, func(fast, _ v1alpha1.ToolCall) []parts.Part {
		return []parts.Part{{Type: parts.ToolStart, ID: fast.ID, Name: fast.Name}}
	})
	if g := c.result().Spec.Generation; g.Outcome != v1alpha1.OutcomeLost {
		t.Errorf("got %+v", g)
	}
}
