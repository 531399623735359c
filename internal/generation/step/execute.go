// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/prompt/compaction"
	"parley.dev/parley/internal/generation/workspaces"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/tools"
)

// executeTools runs the pending calls of the newest reply.
func (p *Performer) executeTools(ctx context.Context, messages []v1beta1.ChatMessage, to Publisher) Outcome {
	b := p.newBatch(ctx, messages, publishAs(v1beta1.RoleTool, to))
	defer p.tools.offer.Close()
	b.Again = p.task.Fence.Attempt > 1
	for i := range b.Denied {
		denied := &b.Denied[i]
		b.showResult(denied, time.Time{})
		p.task.Observed.ToolDenied(denied.Name, p.steps.options.Tools.Has(denied.Name))
	}
	return p.run(ctx, messages, b)
}

// run runs the calls of a batch without known results.
func (p *Performer) run(ctx context.Context, messages []v1beta1.ChatMessage, b *batch) Outcome {
	registry := p.tools.registry().With(advisor.Tool{Consult: (&consultation{performer: p, messages: messages}).answer})
	results := registry.Execute(ctx, b.Batch, func(ctx context.Context, call *tools.Call,
		run func(context.Context) v1beta1.ToolResult) v1beta1.ToolResult {
		return p.task.Observed.Tool(ctx, &call.ToolCall, p.steps.options.Tools.Has(call.Name),
			func(ctx context.Context) v1beta1.ToolResult { return b.run(ctx, call, run) })
	})
	return p.withWorkspaceContext(ctx, p.executed(ctx, b, append(results, b.Denied...)), messages, b.Calls)
}

// executed is the outcome of a batch of calls.
func (p *Performer) executed(ctx context.Context, b *batch, results []v1beta1.ToolResult) Outcome {
	registry := p.steps.options.Tools
	changes, results := registry.AgentChanges(b.Batch, results)
	s := collect.Results(results, b.files, tools.ResultLimitOf(p.chat), b.ran)
	s.Workspace, s.Agents, s.Decisions = registry.WorkspaceChange(results), changes, b.Decisions
	if Interrupted(ctx) { // It asks no more questions.
		return Outcome{Kind: v1beta1.OutcomeInterrupted, Content: s}
	}
	s.Questions, s.PlanApproved = b.questions, registry.PlanApproved(results)
	s.StoppedBy = p.chat.Spec.Tools.StoppedBy(results)
	return Outcome{Kind: v1beta1.OutcomeCompleted, Content: s}
}

// batch shows the progress of calls, and collects files, questions and times in addition to their results.
type batch struct {
	*tools.Batch

	show func(parts.Part)
	now  func() time.Time

	mu         sync.Mutex
	ran        map[string]collect.Span
	shownBytes int
	files      []v1beta1.MessageFile
	fileBytes  int // in base64
	questions  []v1beta1.ToolQuestion
}

const (
	// maxShown limits the output of a batch's running calls: to half of an episode, so that it also holds their results,
	// from which a crashed batch is resumed.
	maxShown = 512 << 10
	// maxFiles and maxAttached limit the files of a batch, maxAttached in bytes of base64: to the largest single file.
	// The rest of a ChatMessage is left for results.
	maxFiles, maxAttached = 32, 700 << 10
)

// newBatch finds the calls to answer, and asks their servers for their tools.
func (p *Performer) newBatch(ctx context.Context, messages []v1beta1.ChatMessage, show func(parts.Part)) *batch {
	b := &batch{Batch: tools.SplitByApproval(p.chat, messages), show: show, now: p.steps.options.Now,
		ran: map[string]collect.Span{}}
	b.Expect = p.steps.options.Expect
	p.tools.askServersOf(ctx, messages, b.Calls)
	p.tools.pinApproved(messages, b.Calls)
	return b
}

// run runs a call, and shows its progress.
func (b *batch) run(ctx context.Context, call *tools.Call, run func(context.Context) v1beta1.ToolResult,
) v1beta1.ToolResult {
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
		accepted := b.ask(call, q)
		asked = asked || accepted
		return accepted
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

// attach adds a file to the results, if there is room. All calls have ended when the files are used.
func (b *batch) attach(file v1beta1.MessageFile) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.files) == maxFiles || b.fileBytes+len(file.Data) > maxAttached {
		return false
	}
	b.fileBytes += len(file.Data)
	b.files = append(b.files, file)
	return true
}

// ask adds the question of a call, if there is room.
func (b *batch) ask(call *tools.Call, q tools.Question) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	question := v1beta1.ToolQuestion{ID: call.ID, Name: call.Name, Input: approval.Input(call.Input),
		Requests: q.Requests, Proposal: q.Proposal, ToolState: q.State}
	if len(b.questions) == v1beta1.MaxToolQuestions || len(q.State) > v1beta1.MaxQuestionState ||
		!approval.QuestionFits(&question) {
		return false
	}
	b.questions = append(b.questions, question)
	return true
}

// note sets when a call ran. A repeated call keeps its first beginning.
func (b *batch) note(id string, span collect.Span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if first := b.ran[id].Began; !first.IsZero() {
		span.Began = first
	}
	b.ran[id] = span
}

func (b *batch) showResult(r *v1beta1.ToolResult, at time.Time) {
	b.show(parts.Part{
		Type: parts.ToolResult, ID: r.ID, Name: r.Name, Text: tools.Truncate(r.Output, tools.ResultLimitOf(b.Chat)),
		IsError: r.IsError, At: at,
	})
}

// resultLost is the result of a call that was running when the generator crashed.
const resultLost = "the generation pod was restarted while this call ran, so that its result is lost; " +
	"it may have had an effect"

// resumeTools is the outcome of a batch that a former process of this pod has begun. It keeps the published results,
// and repeats the other calls that are repeatable. Of the rest the model reads that the result is lost, because there
// may have been an effect. A batch without any result is lost as a whole: its next attempt runs it.
func (p *Performer) resumeTools(ctx context.Context, messages []v1beta1.ChatMessage, shown []parts.Frame) Outcome {
	b := p.newBatch(ctx, messages, func(parts.Part) {}) // The relay takes no more parts of this attempt.
	defer p.tools.offer.Close()
	streamed, ran := collect.ResultsIn(shown)
	b.Again, b.Known, b.ran = true, make(map[string]v1beta1.ToolResult, len(streamed)), ran
	for _, result := range streamed {
		b.Known[result.ID] = result
	}
	registry := p.tools.registry()
	for _, call := range b.Calls {
		if registry.Traits(call.Name).AttachesFile {
			delete(b.Known, call.ID) // Its file was not published.
		}
	}
	markLostFiles(b.Known)
	hasResult := func(call v1beta1.ToolCall) bool {
		_, ok := b.Known[call.ID]
		return ok
	}
	switch {
	case Interrupted(ctx) && registry.Conflict(b.Calls) != "": // None has run. Without the others, one might run now.
	case Interrupted(ctx):
		b.Calls = slices.DeleteFunc(b.Calls, func(call v1beta1.ToolCall) bool {
			return !hasResult(call) && !registry.Traits(call.Name).Repeatable
		})
	case !slices.ContainsFunc(b.Calls, hasResult):
		return Outcome{Kind: v1beta1.OutcomeLost}
	default:
		addLost(registry, b.Calls, b.Known)
	}
	return p.run(ctx, messages, b)
}

// filesLost follows a result whose images were lost: they were not published.
const filesLost = "\n[The generation pod was restarted: what was attached is lost.]"

func markLostFiles(kept map[string]v1beta1.ToolResult) {
	for id, result := range kept {
		if strings.Contains(result.Output, mcp.Attached) {
			result.Output += filesLost
			kept[id] = result
		}
	}
}

// addLost adds the results of the calls that must not be repeated. Of calls in conflict none has run: they are refused
// again.
func addLost(registry *tools.Registry, calls []v1beta1.ToolCall, kept map[string]v1beta1.ToolResult) {
	if registry.Conflict(calls) != "" {
		return
	}
	for _, call := range calls {
		if _, ok := kept[call.ID]; !ok && call.Refusal == "" && !registry.Traits(call.Name).Repeatable {
			kept[call.ID] = v1beta1.ToolResult{ID: call.ID, Name: call.Name, Output: resultLost, IsError: true}
		}
	}
}

// withWorkspaceContext adds the instructions and skills of the workspace to the results of the first calls in it, and
// of the first calls after a person has requested them again. The model then reads them in each step, until a summary
// replaces the message.
func (p *Performer) withWorkspaceContext(ctx context.Context, o Outcome, messages []v1beta1.ChatMessage,
	calls []v1beta1.ToolCall) Outcome {
	read, view := p.steps.options.WorkspaceContext, compaction.View(messages)
	if read == nil || ctx.Err() != nil || o.Kind != v1beta1.OutcomeCompleted ||
		!p.chat.Status.Internal.Attempt.HasWorkspace || !p.steps.options.Tools.NeedWorkspace(p.chat, calls) ||
		slices.ContainsFunc(view, func(m v1beta1.ChatMessage) bool { return hasContext(p.chat, &m) }) {
		return o
	}
	files, answered := read(ctx, p.chat)
	with, fits := collect.WithFiles(o.Content, append(files, removed(view, files)...))
	if !answered || !fits {
		return o // The next calls try again.
	}
	o.Content = with
	if o.Content.Workspace == nil {
		o.Content.Workspace = &v1beta1.WorkspaceChange{}
	}
	o.Content.Workspace.ContextRead = true
	return o
}

// hasContext reports whether a message holds the context, read after the last request for it. A message of the version
// of that request may have been read before.
func hasContext(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	return holdsContext(m) && m.Spec.Generation.HistoryVersion > chat.Status.Internal.ContextRefreshedVersion
}

func holdsContext(m *v1beta1.ChatMessage) bool {
	g := m.Spec.Generation
	return g != nil && g.Workspace != nil && g.Workspace.ContextRead
}

// removed replaces the files of an earlier context that no longer exist, so that the model does not rely on them.
func removed(view []v1beta1.ChatMessage, files []v1beta1.MessageFile) (gone []v1beta1.MessageFile) {
	for i := range view {
		if !holdsContext(&view[i]) {
			continue
		}
		for _, part := range view[i].Spec.Parts {
			named := func(f v1beta1.MessageFile) bool { return f.Name == part.File.Name }
			if part.File == nil || !workspaces.IsContext(part.File.Name) ||
				slices.ContainsFunc(slices.Concat(files, gone), named) {
				continue
			}
			gone = append(gone, v1beta1.MessageFile{Name: part.File.Name, MediaType: "text/markdown",
				Data: base64.StdEncoding.EncodeToString([]byte(goneText))})
		}
	}
	return gone
}

// goneText replaces a removed file.
const goneText = "[The workspace no longer has this: what it said before no longer applies.]\n"
