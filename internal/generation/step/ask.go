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
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/limit"
)

// request is a call of a model that is ready to be made.
type request struct {
	target *models.Target
	call   fantasy.Call
	// warnings are about omitted settings.
	warnings []fantasy.CallWarning
	// unavailable are the requested tools that the provider does not have.
	unavailable []v1beta1.ProviderToolUnavailable
	// private are texts that errors may not quote, in addition to those of the prompt.
	private []string
}

// request sets up the call with the settings of configuration and chat.
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
	own, unavailable := provider.OwnTools(spec, chat.Spec.Tools)
	call.Tools = append(call.Tools, own...)
	provider.Bound(&call, spec, limitOf(chat, t).Tokens)
	return request{target: t, call: call, warnings: warnings, unavailable: unavailable}
}

// effort is that of the turn's message, or else of the chat. A summary has none, and an advisor its own.
func effort(chat *v1beta1.Chat) v1beta1.ReasoningEffort {
	switch action := chat.Status.Generation.Action; {
	case action == v1beta1.ActionExecuteTools:
		return chat.Spec.Advisor.ReasoningEffort
	case action == v1beta1.ActionCompact:
		return ""
	case chat.Status.Turn == nil:
		return chat.Spec.ReasoningEffort
	}
	return cmp.Or(chat.Status.Turn.ReasoningEffort, chat.Spec.ReasoningEffort)
}

// ask calls the model, and shows and collects its reply. The caller holds the memory of the prompt.
func (p *Performer) ask(
	ctx context.Context, r request, messages []v1beta1.ChatMessage, show func(parts.Part),
) Outcome {
	if wait := r.target.MayCall(ctx); wait != nil {
		return Failed(wait)
	}
	// The call has its own context: to drop the stream alone would keep its connection.
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calling, notes := httpguard.WithNotes(calling, p.steps.options.Now)
	silence := r.target.Config.Spec.SilenceTimeoutOrDefault()
	go models.GuardSilence(calling, notes, silence, cancel)
	defer p.steps.options.Expect(calling)()

	call := &observe.ModelCall{
		Target: r.target, Request: r.call, Reply: p.accumulator(r, messages), Show: show,
		Classify: func(err error) *v1beta1.GenerationError { return p.failure(calling, r, notes, silence, err) },
	}
	p.task.Observed.Call(calling, call)
	switch reply := call.Content; {
	case call.Err == nil:
		reply.ModelMilliseconds = call.FinishedAt.Sub(call.StartedAt).Milliseconds()
		return Outcome{Kind: v1beta1.OutcomeCompleted, Content: reply}
	case Interrupted(ctx):
		return Outcome{Kind: v1beta1.OutcomeInterrupted, Content: reply}
	default:
		o := Failed(call.Failure).PaidFor(reply)
		o.Content.ReplyOutcome, o.Content.FinishReason = reply.ReplyOutcome, reply.FinishReason
		return o
	}
}

// accumulator collects the reply to a request.
func (p *Performer) accumulator(r request, messages []v1beta1.ChatMessage) *collect.Accumulator {
	reply := collect.NewAccumulator(r.target.Config.Spec.Provider, p.task.Fence.HistoryVersion, callIDs(messages))
	if p.chat.Status.History.ContextStart > 0 {
		reply.EarlierCallsUnknown()
	}
	reply.TellTime(p.steps.options.Now)
	reply.Warn(r.warnings)
	return reply
}

// failure explains the error of a call that was made in calling.
func (p *Performer) failure(
	calling context.Context, r request, notes *httpguard.Notes, silence time.Duration, err error,
) *v1beta1.GenerationError {
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

// callIDs are the ids of the tool calls in the context.
func callIDs(messages []v1beta1.ChatMessage) []string {
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

const (
	// DefaultPromptMemory is the memory for large prompts: what the 900 MiB of a generation pod leave when 100 chats have
	// small prompts and 64 MiB of histories are cached. Without this limit, 14 chats with 12 MiB of images kill the pod.
	DefaultPromptMemory = 512 << 20
	// heldPerByte is the memory that a running call takes for each byte of its prompt: 5.3 to 6.4 were measured for
	// files, as base64 and JSON. Garbage comes on top.
	heldPerByte = 8
	// largePrompt is the size from which a prompt counts. 100 smaller ones take at most 200 MiB.
	largePrompt = 256 << 10
)

// memoryOf is the memory that a call takes of that for large prompts, for a prompt of so many bytes; 0 for a small one,
// which does not wait.
func memoryOf(size int) int64 {
	if size < largePrompt {
		return 0
	}
	return int64(size) * heldPerByte
}

// hold waits for the memory of a prompt whose files are not read yet: calls that wait hold none.
func (p *Performer) hold(ctx context.Context, in *prompt.Input) (*limit.Held, error) {
	size, files := len(in.SystemPrompt)+len(in.Skills), 0
	for _, text := range in.Instructions {
		size += len(text)
	}
	for _, m := range prompt.Flatten(in.History) {
		size += len(m.Spec.Content)
		for i := range m.Spec.Parts {
			switch part := &m.Spec.Parts[i]; {
			case part.Text != nil:
				size += len(*part.Text)
			case part.ToolCall != nil:
				size += len(part.ToolCall.Input)
			case part.ToolResult != nil:
				size += len(part.ToolResult.Output)
			case part.File != nil:
				files += p.steps.options.Sources.MaxBytes(part.File)
			}
		}
	}
	return p.steps.prompts.Hold(ctx, memoryOf(size+min(files, prompt.MaxFilesBytes)))
}
