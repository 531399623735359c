// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/netguard/httpguard"
)

// request is a call of a model that is ready to be made.
type request struct {
	target *models.Target
	call   fantasy.Call
	// warnings are about settings that it leaves out, and left are the provider's own tools that it does not offer.
	warnings []fantasy.CallWarning
	left     []v1alpha1.ProviderToolUnavailable
	// private are texts that the prompt has within others: of a short one, only the whole counts as a quotation.
	private []string
}

// request sets up the call with everything that the configuration says.
func (p *Performer) request(t *models.Target, built []fantasy.Message) request {
	spec, chat := &t.Config.Spec, p.chat
	call := provider.Call(spec, effort(chat))
	provider.Pin(&call, spec, string(chat.UID))
	call.Prompt = built
	var warnings []fantasy.CallWarning
	for _, tool := range p.tools.registry().Offered(chat) {
		if err := tool.SchemaError(); err != nil {
			warnings = append(warnings, wire.Unsupported("tools.client", fmt.Sprintf("tool %s is not offered to the model: "+
				"inputSchema: %s", tool.Name, err)))
			continue
		}
		call.Tools = append(call.Tools, fantasy.FunctionTool{
			Name: tool.Name, Description: tool.Description, InputSchema: tool.InputSchema,
		})
	}
	own, left := provider.OwnTools(spec, chat.Spec.Tools)
	call.Tools = append(call.Tools, own...)
	return request{target: t, call: call, warnings: warnings, left: left}
}

// effort is what the turn's message asks for, or else its chat. A summary is not what it asked for, and an advisor has
// an effort of its own.
func effort(chat *v1alpha1.Chat) v1alpha1.ReasoningEffort {
	switch action := chat.Status.Generation.Action; {
	case action == v1alpha1.ActionExecuteTools:
		return chat.Spec.Advisor.ReasoningEffort
	case action == v1alpha1.ActionCompact:
		return ""
	case chat.Status.Turn == nil:
		return chat.Spec.ReasoningEffort
	}
	return cmp.Or(chat.Status.Turn.ReasoningEffort, chat.Spec.ReasoningEffort)
}

// ask calls the model, shows what it says, and collects it.
func (p *Performer) ask(
	ctx context.Context, r request, messages []v1alpha1.ChatMessage, show func(parts.Part),
) Outcome {
	release, err := p.steps.prompts.Acquire(ctx, memoryOf(r.call.Prompt))
	if err != nil {
		return Outcome{Kind: v1alpha1.OutcomeInterrupted}
	}
	defer release()
	if wait := r.target.MayCall(ctx); wait != nil {
		return Failed(wait)
	}
	// A context of the call's own: abandoning the stream alone would keep its connection.
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calling, notes := httpguard.WithNotes(calling, p.steps.options.Now)
	silence := r.target.Config.Spec.SilenceTimeoutOrDefault()
	defer models.GuardSilence(notes, silence, cancel)()
	defer p.steps.options.Expect(calling)()

	call := &observe.ModelCall{
		Target: r.target, Request: r.call, Reply: p.accumulator(r, messages), Show: show,
		Classify: func(err error) *v1alpha1.GenerationError { return p.failure(calling, r, notes, silence, err) },
	}
	p.task.Observed.Call(calling, call)
	switch said := call.Content; {
	case call.Err == nil:
		said.Took = call.FinishedAt.Sub(call.StartedAt)
		return Outcome{Kind: v1alpha1.OutcomeCompleted, Content: said}
	case Interrupted(ctx):
		return Outcome{Kind: v1alpha1.OutcomeInterrupted, Content: said}
	default:
		// A reply that answers nothing is paid for all the same.
		o := Failed(call.Failure)
		o.Content = collect.Step{Usage: said.Usage, ReplyOutcome: said.ReplyOutcome, FinishReason: said.FinishReason}
		return o
	}
}

// accumulator collects the reply to a request.
func (p *Performer) accumulator(r request, messages []v1alpha1.ChatMessage) *collect.Accumulator {
	reply := collect.NewAccumulator(r.target.Config.Spec.Provider, p.task.Fence.HistoryVersion, callIDs(messages))
	if p.chat.Status.History.ContextStart > 0 {
		reply.EarlierCallsUnknown()
	}
	reply.TellTime(p.steps.options.Now)
	reply.Warn(r.warnings)
	return reply
}

// failure is why a call failed that was made in calling.
func (p *Performer) failure(
	calling context.Context, r request, notes *httpguard.Notes, silence time.Duration, err error,
) *v1alpha1.GenerationError {
	about := r.target.Subject()
	about.HTTP = notes
	about.Now, about.Private = p.steps.options.Now(), append(prompt.Texts(r.call.Prompt), r.private...)
	if errors.Is(context.Cause(calling), models.ErrSilent) {
		about.Silence = silence
	}
	about.Canceled = about.Silence == 0 && calling.Err() != nil
	e := fault.Classify(err, about)
	r.target.NoteFailure(e)
	return e
}

// callIDs are the ids that the tool calls of the context have.
func callIDs(messages []v1alpha1.ChatMessage) []string {
	var ids []string
	for i := range messages {
		for j := range messages[i].Spec.Parts {
			if call := messages[i].Spec.Parts[j].ToolCall; call != nil {
				ids = append(ids, call.ID)
			}
		}
	}
	return ids
}
