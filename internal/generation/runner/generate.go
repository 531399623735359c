// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/compaction"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
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
	built, ended := a.prompt(ctx, t, compaction.View(messages, a.chat.Status.History.ContextStart))
	if ended != nil {
		return *ended
	}
	o := a.ask(ctx, t, a.call(t, built), messages, v1alpha1.RoleAssistant, episode)
	if o.kind == v1alpha1.OutcomeCompleted {
		o.step = a.withAwaits(o.step)
	}
	a.context = a.contextOf(o.step, messages)
	return o
}

// ask calls the model, shows what it says as coming from role, and collects it.
func (a *attempt) ask(ctx context.Context, t *target, call fantasy.Call, messages []v1alpha1.ChatMessage, role v1alpha1.MessageRole, episode Episode) outcome {
	// A context of the call's own: abandoning the stream alone would keep its connection.
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := t.config.Spec.SilenceTimeoutOrDefault()
	guard := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer guard.Stop()

	reply := step.NewAccumulator(t.config.Spec.Provider, a.fence.HistoryVersion, callIDs(messages))
	err := a.stream(calling, t, call, func(p *fantasy.StreamPart) {
		guard.Reset(silence)
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
	about.Now, about.Private = a.Now(), prompt.Texts(call.Prompt)
	if errors.Is(context.Cause(calling), errSilent) {
		about.Silence = silence
	}
	about.Canceled = about.Silence == 0 && calling.Err() != nil
	return failed(provider.Classify(err, about))
}

// withAwaits says of each call what it waits for besides Parley.
func (a *attempt) withAwaits(s step.Step) step.Step {
	var calls []v1alpha1.ToolCall
	for i := range s.Parts {
		if call := s.Parts[i].ToolCall; call != nil && !call.ProviderExecuted {
			if call.Awaits = tools.Awaits(a.chat.Spec.Tools, call.Name); call.Awaits != "" {
				s.AwaitingCalls++
			}
			calls = append(calls, *call)
		}
	}
	s.WaitsFor = a.Tools.Waits(a.chat.Spec.Tools, calls)
	return s
}

// stream calls the model and hands on each part, until the end or until full says that no more is wanted.
func (a *attempt) stream(ctx context.Context, t *target, call fantasy.Call, each func(*fantasy.StreamPart), full func() bool) error {
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

// call sets up the call with everything that the configuration says.
func (a *attempt) call(t *target, built []fantasy.Message) fantasy.Call {
	spec := &t.config.Spec
	maxTokens := spec.MaxOutputTokensOrDefault()
	call := fantasy.Call{
		Prompt: built, MaxOutputTokens: &maxTokens, Temperature: spec.Temperature, TopP: spec.TopP, TopK: spec.TopK,
		PresencePenalty: spec.PresencePenalty, FrequencyPenalty: spec.FrequencyPenalty,
	}
	for _, tool := range append(tools.Suited(a.Tools.Active(a.chat.Spec.Tools), a.chat), tools.OfClient(a.chat.Spec.Tools)...) {
		call.Tools = append(call.Tools, fantasy.FunctionTool{Name: tool.Name(), Description: tool.Description(), InputSchema: tool.InputSchema()})
	}
	return call
}

// callIDs are the ids that the history's tool calls have.
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
