// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/compaction"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/transport"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/tools"
)

// generate calls the model and collects its reply. It works in a.working.
func (a *attempt) generate(ctx context.Context, messages []v1alpha1.ChatMessage, episode Episode) outcome {
	t, missing := a.Runner.target(ctx, a.chat.Status.Generation.ModelConfig)
	if missing != nil {
		return failed(missing)
	}
	a.target = t
	built, ended := a.prompt(ctx, t, compaction.View(messages))
	if ended != nil {
		return *ended
	}
	call, invalid := a.call(t, built)
	if invalid != nil {
		return failed(invalid)
	}
	a.measureClients(messages)
	a.askTitle(t, messages)
	if a.wantsSummary(t) {
		a.question = questionOf(messages)
	}
	o := a.ask(ctx, t, call, messages, v1alpha1.RoleAssistant, episode)
	if o.kind == v1alpha1.OutcomeCompleted {
		o.step = a.withAwaits(t, o.step)
	}
	a.context = a.contextOf(o.step, messages)
	return o
}

// ask calls the model, shows what it says as coming from role, and collects it.
func (a *attempt) ask(ctx context.Context, t *target, call request, messages []v1alpha1.ChatMessage, role v1alpha1.MessageRole, episode Episode) outcome {
	leave, err := a.room.enter(ctx, call.Prompt)
	if err != nil {
		return outcome{kind: v1alpha1.OutcomeInterrupted}
	}
	defer leave()
	// A context of the call's own: abandoning the stream alone would keep its connection.
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	calling, notes := transport.WithNotes(calling)
	silence := t.config.Spec.SilenceTimeoutOrDefault()
	defer guardSilence(notes, silence, cancel)()
	defer a.endings.expect(calling, stuckAfter)()

	reply := step.NewAccumulator(t.config.Spec.Provider, a.fence.HistoryVersion, callIDs(messages))
	if a.chat.Status.History.ContextStart > 0 {
		reply.EarlierCallsUnknown()
	}
	reply.TellTime(a.Now)
	reply.Warn(call.warnings)
	err = a.stream(calling, t, call.Call, func(p *fantasy.StreamPart) {
		if part, ok := reply.Add(p); ok {
			episode.Publish(string(role), part)
		}
	}, reply.Full)
	switch {
	case err == nil:
		return outcome{kind: v1alpha1.OutcomeCompleted, step: reply.Finish()}
	case a.interrupted():
		return outcome{kind: v1alpha1.OutcomeInterrupted, step: reply.Finish()}
	}
	about := t.subject()
	about.HTTP = notes
	about.Now, about.Private = a.Now(), append(prompt.Texts(call.Prompt), call.private...)
	if errors.Is(context.Cause(calling), errSilent) {
		about.Silence = silence
	}
	about.Canceled = about.Silence == 0 && calling.Err() != nil
	return failed(fault.Classify(err, about))
}

// withAwaits says of each call what it waits for besides Parley.
func (a *attempt) withAwaits(t *target, s step.Step) step.Step {
	if a.Tools.Conflict(pendingCalls(s)) != "" { // None will be run, so that there is nothing to wait for.
		return s
	}
	var calls []v1alpha1.ToolCall
	for i := range s.Parts {
		if call := s.Parts[i].ToolCall; call != nil && !call.ProviderExecuted {
			if call.Awaits = tools.Awaits(a.chat.Spec.Tools, t.config.Spec.Tools, call.Name); call.Awaits != "" {
				s.AwaitingCalls++
			}
			calls = append(calls, *call)
		}
	}
	s.WaitsFor = a.Tools.Waits(a.chat.Spec.Tools, calls)
	return s
}

func pendingCalls(s step.Step) (calls []v1alpha1.ToolCall) {
	for i := range s.Parts {
		if call := s.Parts[i].ToolCall; call != nil && !call.ProviderExecuted {
			calls = append(calls, *call)
		}
	}
	return calls
}

// stream calls the model and hands on each part, until the end or until full says that no more is wanted.
func (a *attempt) stream(ctx context.Context, t *target, call fantasy.Call, each func(*fantasy.StreamPart), full func() bool) (err error) {
	ctx, each, end := a.observeCall(ctx, t, &call, each)
	defer func() { end(err) }()
	stream, err := t.model.Stream(ctx, call)
	if err != nil {
		return err
	}
	finished := false
	for part := range stream {
		switch part.Type {
		case fantasy.StreamPartTypeError:
			return part.Error
		case fantasy.StreamPartTypeFinish:
			finished = true
		}
		each(&part)
		if full() {
			return nil
		}
	}
	if !finished {
		return fantasy.NewIncompleteStreamError()
	}
	return nil
}

// request is a call that is ready to be made.
type request struct {
	fantasy.Call
	// warnings are about settings that it leaves out.
	warnings []fantasy.CallWarning
	// private are texts that the prompt has within others: of a short one, only the whole counts as a quotation.
	private []string
}

// call sets up the call with everything that the configuration says.
func (a *attempt) call(t *target, built []fantasy.Message) (request, *v1alpha1.GenerationError) {
	spec := &t.config.Spec
	call, warnings, err := provider.Call(spec, a.effort())
	if err != nil {
		return request{}, &v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorModelConfigInvalid, Provider: string(spec.Provider),
			Message: fmt.Sprintf("ChatModelConfig %s cannot be used: %s", t.config.Name, err),
			Advice:  "Correct it, then send a message to go on",
		}
	}
	call.Prompt = built
	for _, tool := range append(tools.Suited(a.Tools.Active(a.chat.Spec.Tools), a.chat), tools.OfClient(a.chat.Spec.Tools)...) {
		call.Tools = append(call.Tools, fantasy.FunctionTool{Name: tool.Name(), Description: tool.Description(), InputSchema: tool.InputSchema()})
	}
	if a.chat.Spec.Tools != nil {
		own, missing := provider.OwnTools(spec, a.chat.Spec.Tools.Provider)
		call.Tools, warnings = append(call.Tools, own...), append(warnings, missing...)
	}
	return request{Call: call, warnings: warnings}, nil
}

// effort is what the turn's message asks for. A summary is not what it asked for, and an advisor has an effort of its own.
func (a *attempt) effort() v1alpha1.ReasoningEffort {
	if a.chat.Status.Generation.Action == v1alpha1.ActionExecuteTools {
		return a.chat.Spec.Advisor.ReasoningEffort
	}
	if a.chat.Status.Turn == nil || a.chat.Status.Generation.Action == v1alpha1.ActionCompact {
		return ""
	}
	return a.chat.Status.Turn.ReasoningEffort
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
