// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"sync"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/tools"
)

// executeTools runs the calls of the newest reply that are Parley's to run now.
func (p *Performer) executeTools(ctx context.Context, messages []v1alpha1.ChatMessage, to Publisher) Outcome {
	b := p.newBatch(ctx, messages, publishAs(v1alpha1.RoleTool, to))
	defer p.tools.offer.Close()
	b.Again = p.task.Fence.Attempt > 1
	for i := range b.Denied {
		denied := &b.Denied[i]
		b.showResult(denied, time.Time{})
		p.task.Observed.ToolDenied(denied.Name, p.steps.options.Tools.Has(denied.Name))
	}
	return p.run(ctx, messages, b)
}

// run runs the calls of a batch whose results are not known.
func (p *Performer) run(ctx context.Context, messages []v1alpha1.ChatMessage, b *batch) Outcome {
	registry := p.tools.registry().With(advisor.Tool{Consult: (&consultation{performer: p, messages: messages}).answer})
	results := registry.Execute(ctx, b.Batch, func(ctx context.Context, call *tools.Call,
		run func(context.Context) v1alpha1.ToolResult) v1alpha1.ToolResult {
		return p.task.Observed.Tool(ctx, &call.ToolCall, p.steps.options.Tools.Has(call.Name),
			func(ctx context.Context) v1alpha1.ToolResult { return b.run(ctx, call, run) })
	})
	return p.withWorkspaceContext(ctx, p.executed(ctx, b, append(results, b.Denied...)), messages, b.Calls)
}

// executed is the outcome of a batch of calls.
func (p *Performer) executed(ctx context.Context, b *batch, results []v1alpha1.ToolResult) Outcome {
	registry := p.steps.options.Tools
	changes, results := registry.AgentChanges(b.Batch, results)
	s := collect.Results(results, b.files, tools.ResultLimitOf(p.chat), b.ran)
	s.Workspace, s.Agents, s.Decisions = registry.WorkspaceChange(results), changes, b.Decisions
	if Interrupted(ctx) {
		return Outcome{Kind: v1alpha1.OutcomeInterrupted, Content: s} // No one is asked any longer.
	}
	s.Questions, s.PlanApproved = b.asked, registry.PlanApproved(results)
	s.StoppedBy = p.chat.Spec.Tools.StoppedBy(results)
	return Outcome{Kind: v1alpha1.OutcomeCompleted, Content: s}
}

// batch shows what becomes of the calls of a batch while they run, and keeps what comes with their results.
type batch struct {
	*tools.Batch

	show func(parts.Part)
	now  func() time.Time

	mu sync.Mutex
	// ran is when calls ran.
	ran map[string]collect.Span
	// shownBytes is how many bytes tools have shown while they ran.
	shownBytes int
	// files come with the results, and take so many bytes in base64.
	files     []v1alpha1.MessageFile
	fileBytes int
	// asked are the calls that ask people.
	asked []v1alpha1.ToolQuestion
}

// maxShown is how many bytes the calls of a batch may show while they run: half of what an episode holds, so that there
// is room for their results, from which the batch is resumed after a crash.
const maxShown = 512 << 10

// maxAttached is how many bytes of base64 the files of a batch have together: what the largest file has that is
// attached alone. The rest of what one ChatMessage holds is left for results.
const maxAttached = 700 << 10

// newBatch finds the calls to answer, and asks their servers for their tools.
func (p *Performer) newBatch(ctx context.Context, messages []v1alpha1.ChatMessage, show func(parts.Part)) *batch {
	b := &batch{Batch: tools.SplitByApproval(p.chat, messages), show: show, now: p.steps.options.Now,
		ran: map[string]collect.Span{}}
	b.Expect = p.steps.options.Expect
	p.tools.askServersOf(ctx, messages, b.Calls)
	p.tools.pinApproved(messages, b.Calls)
	return b
}

// run runs a call, and shows what it does.
func (b *batch) run(ctx context.Context, call *tools.Call, run func(context.Context) v1alpha1.ToolResult,
) v1alpha1.ToolResult {
	began := b.now().UTC()
	b.note(call.ID, collect.Span{Began: began})
	b.show(parts.Part{Type: parts.ToolStart, ID: call.ID, Name: call.Name, At: began})
	call.Show = func(piece string) {
		if b.fits(piece) {
			b.show(parts.Part{Type: parts.ToolOutput, ID: call.ID, Name: call.Name, Text: piece})
		}
	}
	asked := false
	call.Ask = func(q tools.Question) bool {
		taken := b.ask(call, q)
		asked = asked || taken
		return taken
	}
	call.Attach = b.attach
	result := run(ctx)
	ended := b.now().UTC()
	b.note(call.ID, collect.Span{Began: began, Ended: ended})
	if !asked {
		b.showResult(&result, ended)
	}
	return result
}

// fits reports whether there is room to show the piece.
func (b *batch) fits(piece string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shownBytes += len(piece)
	return b.shownBytes <= maxShown
}

// attach keeps a file that comes with a result, if there is room. All calls have ended when the files are used.
func (b *batch) attach(file v1alpha1.MessageFile) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.files) == maxFiles || b.fileBytes+len(file.Data) > maxAttached {
		return false
	}
	b.fileBytes += len(file.Data)
	b.files = append(b.files, file)
	return true
}

// ask keeps the question of a call, if there is room.
func (b *batch) ask(call *tools.Call, q tools.Question) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	question := v1alpha1.ToolQuestion{ID: call.ID, Name: call.Name, Input: approval.Input(call.Input),
		Requests: q.Requests, Proposal: q.Proposal, ToolState: q.State}
	if len(b.asked) == v1alpha1.MaxToolQuestions || len(q.State) > v1alpha1.MaxQuestionState ||
		!approval.QuestionFits(&question) {
		return false
	}
	b.asked = append(b.asked, question)
	return true
}

// maxFiles is how many files come with the results of a batch at most.
const maxFiles = 32

// note keeps when a call ran. One that is made again began when it began first.
func (b *batch) note(id string, span collect.Span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first := b.ran[id].Began; !first.IsZero() {
		span.Began = first
	}
	b.ran[id] = span
}

func (b *batch) showResult(r *v1alpha1.ToolResult, at time.Time) {
	b.show(parts.Part{
		Type: parts.ToolResult, ID: r.ID, Name: r.Name, Text: tools.Truncate(r.Output, tools.ResultLimitOf(b.Chat)),
		IsError: r.IsError, At: at,
	})
}
