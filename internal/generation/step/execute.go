// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"maps"
	"sync"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/stream/parts"
	"parley.dev/parley/internal/tools"
)

// executeTools runs the calls of the newest reply that are Parley's to run now.
func (p *Performer) executeTools(ctx context.Context, messages []v1alpha1.ChatMessage, to Publisher) Outcome {
	calls := tools.Due(messages, p.chat.Status.Internal.Turn.Decisions)
	live := &batch{
		show: publishAs(v1alpha1.RoleTool, to), now: p.steps.options.Now, limit: tools.ResultLimitOf(p.chat),
		ran: map[string]collect.Span{},
	}
	for i := range calls.Denied {
		denied := &calls.Denied[i]
		live.showResult(denied, time.Time{})
		p.task.Observed.ToolDenied(denied.Name, p.steps.options.Tools.Has(denied.Name))
	}
	defer p.steps.options.Expect(ctx)()
	registry := p.steps.options.Tools.With(advisor.Tool{Consult: (&consultation{performer: p, messages: messages}).answer})
	results := registry.Execute(ctx, p.chat, calls.Run, p.task.Observed.Tools(live.observe))
	return p.executed(ctx, append(results, calls.Denied...), live.spans())
}

// executed is the outcome of a batch of calls.
func (p *Performer) executed(ctx context.Context, results []v1alpha1.ToolResult, ran map[string]collect.Span) Outcome {
	s := collect.Results(results, tools.ResultLimitOf(p.chat), ran)
	if Interrupted(ctx) {
		return Outcome{Kind: v1alpha1.OutcomeInterrupted, Content: s}
	}
	s.StoppedBy = p.chat.Spec.Tools.StoppedBy(results)
	return Outcome{Kind: v1alpha1.OutcomeCompleted, Content: s}
}

// resultLost is what the model reads of a call that was running when the generator crashed, beside calls that had
// ended.
const resultLost = "the generation pod was restarted while this call ran, so that its result is lost; " +
	"it may have had an effect"

// resumeTools is the outcome of a batch that a former life of this process was running: results that were streamed are
// kept, and what ran besides says that its result is lost. It is not run again, because the model has to know that it
// may have had an effect. A batch of which no call had ended is lost as a whole.
func (p *Performer) resumeTools(ctx context.Context, messages []v1alpha1.ChatMessage, shown []parts.Frame) Outcome {
	streamed, ran := collect.ResultsIn(shown)
	kept := make(map[string]v1alpha1.ToolResult, len(streamed))
	for _, result := range streamed {
		kept[result.ID] = result
	}
	calls := tools.Due(messages, p.chat.Status.Internal.Turn.Decisions)
	ended := false
	results := make([]v1alpha1.ToolResult, 0, len(calls.Run)+len(calls.Denied))
	for _, call := range calls.Run {
		result, ok := kept[call.ID]
		if !ok {
			result = v1alpha1.ToolResult{ID: call.ID, Name: call.Name, Output: resultLost, IsError: true}
		}
		ended = ended || ok
		results = append(results, result)
	}
	if !ended {
		return Outcome{Kind: v1alpha1.OutcomeLost}
	}
	return p.executed(ctx, append(results, calls.Denied...), ran)
}

// batch shows what becomes of the calls of a batch while they run, and remembers when they ran.
type batch struct {
	show func(parts.Part)
	now  func() time.Time
	// limit is the most bytes of a result.
	limit int

	mu  sync.Mutex
	ran map[string]collect.Span
}

// observe is a tools.Observer.
func (b *batch) observe(ctx context.Context, call *v1alpha1.ToolCall, _ bool) (context.Context, tools.Watch) {
	began := b.now().UTC()
	id, name := call.ID, call.Name
	b.note(id, collect.Span{Began: began})
	b.show(parts.Part{Type: parts.ToolStart, ID: id, Name: name, At: began})
	return ctx, tools.Watch{
		Show: func(piece string) { b.show(parts.Part{Type: parts.ToolOutput, ID: id, Name: name, Text: piece}) },
		End: func(result *v1alpha1.ToolResult) {
			ended := b.now().UTC()
			b.note(id, collect.Span{Began: began, Ended: ended})
			b.showResult(result, ended)
		},
	}
}

func (b *batch) note(id string, span collect.Span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran[id] = span
}

func (b *batch) spans() map[string]collect.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.ran)
}

func (b *batch) showResult(r *v1alpha1.ToolResult, at time.Time) {
	b.show(parts.Part{
		Type: parts.ToolResult, ID: r.ID, Name: r.Name, Text: tools.Cap(r.Output, b.limit), IsError: r.IsError, At: at,
	})
}
