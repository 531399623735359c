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
	b := p.newBatch(ctx, messages, func(parts.Part) {}) // The relay takes no more parts of this attempt.
	defer p.tools.offer.Close()
	streamed, ran := collect.ResultsIn(shown)
	b.Again, b.Known, b.ran = true, make(map[string]v1alpha1.ToolResult, len(streamed)), ran
	for _, result := range streamed {
		b.Known[result.ID] = result
	}
	registry := p.tools.registry()
	for _, call := range b.Calls {
		if registry.Traits(call.Name).AttachesFile {
			delete(b.Known, call.ID) // Its file was not streamed.
		}
	}
	markLost(b.Known)
	ended := func(call v1alpha1.ToolCall) bool {
		_, ok := b.Known[call.ID]
		return ok
	}
	switch {
	case Interrupted(ctx):
		b.Calls = slices.DeleteFunc(b.Calls, func(call v1alpha1.ToolCall) bool {
			return !ended(call) && !registry.Traits(call.Name).Repeatable
		})
	case !slices.ContainsFunc(b.Calls, ended):
		return Outcome{Kind: v1alpha1.OutcomeLost}
	default:
		giveUp(registry, b.Calls, b.Known)
	}
	return p.run(ctx, messages, b)
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
		if _, ok := kept[call.ID]; !ok && call.Refusal == "" && !registry.Traits(call.Name).Repeatable {
			kept[call.ID] = v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: resultLost, IsError: true}
		}
	}
}
