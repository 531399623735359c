// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"maps"
	"sync"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/parts"
	"parley.dev/parley/internal/tools"
)

// executeTools runs the calls of the newest reply that are Parley's to run now.
func (a *attempt) executeTools(messages []v1alpha1.ChatMessage, episode Episode) outcome {
	calls := tools.Due(messages, a.chat.Status.Turn.Decisions)
	live := &liveBatch{attempt: a, episode: episode, limit: tools.ResultLimitOf(a.chat), ran: map[string]collect.Span{}}
	for i := range calls.Denied {
		live.publishResult(&calls.Denied[i], time.Time{})
	}
	a.countDenied(calls.Denied)
	defer a.endings.expect(a.working, stuckAfter)()
	registry := a.Tools.With(advisor.Tool{Consult: func(ctx context.Context, call tools.Call) advisor.Result {
		return a.consult(ctx, messages, call)
	}})
	results := append(registry.Execute(a.working, a.chat, calls.Run, live.observe), calls.Denied...)
	return a.executed(results, live.spans())
}

// executed is the outcome of a batch of calls.
func (a *attempt) executed(results []v1alpha1.ToolResult, ran map[string]collect.Span) outcome {
	s := collect.Results(results, tools.ResultLimitOf(a.chat), ran)
	if a.interrupted() {
		return outcome{kind: v1alpha1.OutcomeInterrupted, step: s}
	}
	s.StoppedBy = a.chat.Spec.Tools.StoppedBy(results)
	return outcome{kind: v1alpha1.OutcomeCompleted, step: s}
}

// resultLost is what the model reads of a call that was running when the generator crashed, beside calls that had ended.
const resultLost = "the generation pod was restarted while this call ran, so that its result is lost; it may have had an effect"

// resumeTools is the outcome of a batch that a former life of this process was running: results that were streamed are kept, and
// what ran besides says that its result is lost. It is not run again, because the model has to know that it may have had an effect.
// A batch of which no call had ended is lost as a whole.
func (a *attempt) resumeTools(messages []v1alpha1.ChatMessage, frames []parts.Frame) outcome {
	streamed, ran := collect.ResultsIn(frames)
	kept := make(map[string]v1alpha1.ToolResult, len(streamed))
	for _, result := range streamed {
		kept[result.ID] = result
	}
	calls := tools.Due(messages, a.chat.Status.Turn.Decisions)
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
		return outcome{kind: v1alpha1.OutcomeLost}
	}
	return a.executed(append(results, calls.Denied...), ran)
}

// liveBatch shows what becomes of the calls of a batch while they run, and remembers when they ran.
type liveBatch struct {
	*attempt
	episode Episode
	// limit is the most bytes of a result.
	limit int

	mu  sync.Mutex
	ran map[string]collect.Span
}

// observe is a tools.Observer.
func (b *liveBatch) observe(ctx context.Context, call *v1alpha1.ToolCall, builtIn bool) (context.Context, tools.Watch) {
	ctx, measured := b.observeTool(ctx, call, builtIn)
	began := b.Now().UTC()
	id, name := call.ID, call.Name
	b.note(id, collect.Span{Began: began})
	b.publish(parts.Part{Type: parts.ToolStart, ID: id, Name: name, At: began})
	return ctx, tools.Watch{
		Show: func(piece string) { b.publish(parts.Part{Type: parts.ToolOutput, ID: id, Name: name, Text: piece}) },
		End: func(result *v1alpha1.ToolResult) {
			ended := b.Now().UTC()
			b.note(id, collect.Span{Began: began, Ended: ended})
			b.publishResult(result, ended)
			measured(result)
		},
	}
}

func (b *liveBatch) note(id string, span collect.Span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran[id] = span
}

func (b *liveBatch) spans() map[string]collect.Span {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.ran)
}

func (b *liveBatch) publishResult(r *v1alpha1.ToolResult, at time.Time) {
	b.publish(parts.Part{Type: parts.ToolResult, ID: r.ID, Name: r.Name, Text: tools.Cap(r.Output, b.limit), IsError: r.IsError, At: at})
}

func (b *liveBatch) publish(part parts.Part) { b.episode.Publish(string(v1alpha1.RoleTool), part) }
