// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"maps"
	"slices"
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
	calls := tools.Due(messages, p.chat.Status.Internal.Turn.Decisions)
	p.meetServersOf(ctx, messages, calls.Run)
	defer p.served.offer.Close()
	p.pinApproved(messages, calls.Run)
	live := p.newBatch(publishAs(v1alpha1.RoleTool, to))
	for i := range calls.Denied {
		denied := &calls.Denied[i]
		live.showResult(denied, time.Time{})
		p.task.Observed.ToolDenied(denied.Name, p.steps.options.Tools.Has(denied.Name))
	}
	results := p.run(ctx, messages,
		tools.Batch{Chat: p.chat, Reply: calls.Reply, Calls: calls.Run, Again: p.task.Fence.Attempt > 1,
			Answers: p.answers(messages), Ask: live.ask, Attach: live.attach}, live)
	o := p.executed(ctx, calls, append(results, calls.Denied...), live.spans(), live)
	return p.withWorkspaceContext(ctx, o, messages, calls.Run)
}

// run runs the calls of a batch that are not known yet.
func (p *Performer) run(
	ctx context.Context, messages []v1alpha1.ChatMessage, calls tools.Batch, live *batch,
) []v1alpha1.ToolResult {
	calls.Expect = p.steps.options.Expect
	registry := p.registry().With(advisor.Tool{Consult: (&consultation{performer: p, messages: messages}).answer})
	return registry.Execute(ctx, calls, p.task.Observed.Tools(live.observe))
}

// executed is the outcome of a batch of calls.
func (p *Performer) executed(ctx context.Context, calls tools.DueCalls, results []v1alpha1.ToolResult,
	ran map[string]collect.Span, live *batch) Outcome {
	registry := p.steps.options.Tools
	changes, results := registry.Changes(&tools.Batch{Chat: p.chat, Reply: calls.Reply, Calls: calls.Run}, results)
	s := collect.Results(results, live.files, tools.ResultLimitOf(p.chat), ran)
	s.Workspace, s.Agents, s.Decisions = registry.Decision(results), changes, calls.Decisions
	if Interrupted(ctx) {
		return Outcome{Kind: v1alpha1.OutcomeInterrupted, Content: s} // Nobody is asked any more.
	}
	s.Questions, s.PlanApproved = live.asked, registry.Approved(results)
	s.StoppedBy = p.chat.Spec.Tools.StoppedBy(results)
	return Outcome{Kind: v1alpha1.OutcomeCompleted, Content: s}
}

// batch shows what becomes of the calls of a batch while they run, and remembers when they ran.
type batch struct {
	show func(parts.Part)
	now  func() time.Time
	// limit is the most bytes of a result.
	limit int

	mu  sync.Mutex
	ran map[string]collect.Span
	// said is how many bytes tools have shown while they ran.
	said int
	// files come with the results, and take so many bytes in base64.
	files []v1alpha1.MessageFile
	taken int
	// asked are the calls that ask people.
	asked []v1alpha1.ToolQuestion
}

// maxSaid is how many bytes the calls of a batch may show while they run: half of what an episode holds, so that there
// is room for their results, from which the batch is resumed after a crash.
const maxSaid = 512 << 10

// maxAttached is how many bytes of base64 the files of a batch have together: what the largest file has that is
// attached alone. The rest of what one ChatMessage holds is left for results.
const maxAttached = 700 << 10

func (p *Performer) newBatch(show func(parts.Part)) *batch {
	return &batch{
		show: show, now: p.steps.options.Now, limit: tools.ResultLimitOf(p.chat), ran: map[string]collect.Span{},
	}
}

// observe is a tools.Observer.
func (b *batch) observe(ctx context.Context, call *v1alpha1.ToolCall, _ bool) (context.Context, tools.Watch) {
	began := b.now().UTC()
	id, name := call.ID, call.Name
	b.note(id, collect.Span{Began: began})
	b.show(parts.Part{Type: parts.ToolStart, ID: id, Name: name, At: began})
	return ctx, tools.Watch{
		Show: func(piece string) {
			if b.fits(piece) {
				b.show(parts.Part{Type: parts.ToolOutput, ID: id, Name: name, Text: piece})
			}
		},
		End: func(result *v1alpha1.ToolResult) {
			ended := b.now().UTC()
			b.note(id, collect.Span{Began: began, Ended: ended})
			if !b.asks(id) {
				b.showResult(result, ended)
			}
		},
	}
}

// fits reports whether there is room to show the piece.
func (b *batch) fits(piece string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said += len(piece)
	return b.said <= maxSaid
}

// attach keeps a file that comes with a result, if there is room. All calls have ended when the files are used.
func (b *batch) attach(file v1alpha1.MessageFile) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.files) == maxFiles || b.taken+len(file.Data) > maxAttached {
		return false
	}
	b.taken += len(file.Data)
	b.files = append(b.files, file)
	return true
}

// ask keeps the question of a call, if there is room.
func (b *batch) ask(call v1alpha1.ToolCall, q tools.Question) bool {
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

// asks reports whether the call asks people: it has no result to show.
func (b *batch) asks(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.asked, func(r v1alpha1.ToolQuestion) bool { return r.ID == id })
}

// maxFiles is how many files come with the results of a batch at most.
const maxFiles = 32

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
