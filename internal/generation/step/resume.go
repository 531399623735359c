// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"
	"strings"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/tools"
)

// resultLost is what the model reads of a call that was running when the generator crashed, beside calls that had
// ended.
const resultLost = "the generation pod was restarted while this call ran, so that its result is lost; " +
	"it may have had an effect"

// resumeTools is the outcome of a batch that a former life of this process was running. Results that were streamed are
// kept. What ran besides is made again if that does nothing twice; of the rest the model reads that the result is lost,
// because it has to know that there may have been an effect. A batch of which no call had ended is lost as a whole, and
// its next attempt runs it.
func (p *Performer) resumeTools(ctx context.Context, messages []v1alpha1.ChatMessage, shown []parts.Frame) Outcome {
	streamed, ran := collect.ResultsIn(shown)
	kept := make(map[string]v1alpha1.ToolResult, len(streamed))
	for _, result := range streamed {
		kept[result.ID] = result
	}
	calls := tools.Due(messages, p.chat.Status.Internal.Turn.Decisions)
	p.meetServersOf(ctx, messages, calls.Run)
	defer p.served.offer.Close()
	p.pinApproved(messages, calls.Run)
	registry := p.registry()
	for _, call := range calls.Run {
		if registry.Attaches(call.Name) {
			delete(kept, call.ID) // Its file was not streamed.
		}
	}
	markLost(kept)
	ended := slices.ContainsFunc(calls.Run, func(call v1alpha1.ToolCall) bool {
		_, ok := kept[call.ID]
		return ok
	})
	switch {
	case Interrupted(ctx):
		calls.Run = slices.DeleteFunc(calls.Run, func(call v1alpha1.ToolCall) bool {
			_, ok := kept[call.ID]
			return !ok && !registry.Repeatable(call.Name)
		})
	case !ended:
		return Outcome{Kind: v1alpha1.OutcomeLost}
	default:
		giveUp(registry, calls.Run, kept)
	}
	live := p.newBatch(func(parts.Part) {}) // The relay takes no more parts of this attempt.
	results := p.run(ctx, messages, tools.Batch{Chat: p.chat, Reply: calls.Reply, Calls: calls.Run, Known: kept,
		Again: true, Answers: p.answers(messages), Ask: live.ask, Attach: live.attach}, live)
	for id, span := range live.spans() {
		if first := ran[id].Began; !first.IsZero() {
			span.Began = first
		}
		ran[id] = span
	}
	o := p.executed(ctx, calls, append(results, calls.Denied...), ran, live)
	return p.withWorkspaceContext(ctx, o, messages, calls.Run)
}

// filesLost is what the model reads behind a result whose images a former life of this process had.
const filesLost = "\n[The generation pod was restarted: what was attached is lost.]"

// markLost says of results that came with images that these are gone: they were not streamed.
func markLost(kept map[string]v1alpha1.ToolResult) {
	for id, result := range kept {
		if strings.Contains(result.Output, mcp.Attached) {
			result.Output += filesLost
			kept[id] = result
		}
	}
}

// giveUp adds to the results that are kept those of the calls that must not be made again. Calls in conflict were none
// of them begun, and are refused once more.
func giveUp(registry *tools.Registry, calls []v1alpha1.ToolCall, kept map[string]v1alpha1.ToolResult) {
	if registry.Conflict(calls) != "" {
		return
	}
	for _, call := range calls {
		if _, ok := kept[call.ID]; !ok && call.Refusal == "" && !registry.Repeatable(call.Name) {
			kept[call.ID] = v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: resultLost, IsError: true}
		}
	}
}
