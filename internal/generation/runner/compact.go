// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/compaction"
	"parley.dev/parley/internal/modelconfig"
)

// compact asks the model for a summary of the context, all but the messages that nobody has answered yet. It works in a.working.
func (a *attempt) compact(ctx context.Context, messages []v1alpha1.ChatMessage, episode Episode) outcome {
	t, missing := a.Runner.target(ctx, a.chat.Status.Generation.ModelConfig)
	if missing != nil {
		return failed(missing)
	}
	a.target = t
	unanswered := compaction.Unanswered(messages)
	input := compaction.View(messages[:len(messages)-unanswered])
	if len(input) == 0 {
		return failed(&v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorContextTooLong, Message: "The newest messages alone do not fit the model's context",
			Advice: "Send shorter ones, or name a model with a larger context",
		})
	}
	source := a.compactionSource()
	budget := compaction.Budget(a.limitOf(t).Tokens, source, input)
	o := a.askSummary(ctx, messages, compaction.Input(input, budget), episode)
	if o.err != nil && o.err.Reason == v1alpha1.ErrorContextTooLong { // Without a summary the chat could not go on.
		o = a.askSummary(ctx, messages, compaction.Input(input, compaction.Less(budget, input)), episode)
	}
	if o.kind != v1alpha1.OutcomeCompleted {
		o.step = collect.Step{Usage: o.step.Usage} // Half a summary is worth nothing.
		return o
	}
	if o.step = onlyText(o.step); len(o.step.Parts) == 0 {
		return failed(&v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorProviderError, Provider: string(t.config.Spec.Provider),
			Message: fmt.Sprintf("%s wrote an empty summary of the conversation", t.config.Spec.Model),
			Advice:  "Name another model in compaction.modelConfigRef of the ChatModelConfig, or start a new chat",
		}).paidFor(o.step)
	}
	a.compaction = &v1alpha1.CompactionAccount{Source: source, Messages: int64(len(input)), ContextStart: a.chat.Status.History.Length - int64(unanswered)}
	if cause := a.chat.Status.Generation.Compaction; cause != nil {
		a.compaction.CompactionCause = *cause
	}
	a.logCompaction(ctx, t, o.step.Usage)
	return o
}

// askSummary asks a.target for a summary of what it is shown.
func (a *attempt) askSummary(ctx context.Context, messages, shown []v1alpha1.ChatMessage, episode Episode) outcome {
	built, ended := a.prompt(ctx, a.target, shown)
	if ended != nil {
		return *ended
	}
	call, invalid := a.call(a.target, built)
	if invalid != nil {
		return failed(invalid)
	}
	call.ToolChoice = new(fantasy.ToolChoiceNone) // They are declared, because the conversation has calls of them.
	return a.ask(ctx, a.target, call, messages, v1alpha1.RoleSystem, episode)
}

func (a *attempt) compactionSource() v1alpha1.CompactionSource {
	if source := a.chat.Status.Compaction; source != "" {
		return source
	}
	return v1alpha1.CompactionThreshold
}

// onlyText is the text of a step as its only part.
func onlyText(s collect.Step) collect.Step {
	var text strings.Builder
	for i := range s.Parts {
		if part := &s.Parts[i]; part.Type == v1alpha1.PartText && part.Text != nil {
			text.WriteString(*part.Text)
		}
	}
	s.Parts, s.PendingCalls, s.AwaitingCalls, s.Preview = nil, 0, 0, ""
	if said := strings.TrimSpace(text.String()); said != "" {
		s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: &said}}
	}
	return s
}

// logCompaction logs the numbers of a compaction, and nothing of what was said.
func (a *attempt) logCompaction(ctx context.Context, t *target, used v1alpha1.TokenUsage) {
	c := a.compaction
	a.Log.InfoContext(ctx, "the context was summarised", a.about(),
		slog.String("source", string(c.Source)), slog.String("modelConfig", t.config.Name), slog.Int64("messages", c.Messages),
		slog.Int("thresholdPercent", int(c.ThresholdPercent)), slog.Int("usagePercent", int(c.UsagePercent)),
		slog.Int64("contextTokens", c.ContextTokens), slog.Int64("contextLimit", c.ContextLimit),
		slog.Int64("inputTokens", used.InputTokens+used.CacheReadTokens+used.CacheWriteTokens), slog.Int64("summaryTokens", used.OutputTokens))
}

// limitOf is how many tokens the target's context holds, as far as it is known.
func (a *attempt) limitOf(t *target) modelconfig.Limit {
	return modelconfig.ContextLimit(t.config, a.chat.Status.LearnedContextLimit)
}

// contextOf is how full the context was when the model gave this reply.
func (a *attempt) contextOf(s collect.Step, messages []v1alpha1.ChatMessage) *v1alpha1.ContextStatus {
	replies, compacted := compaction.Replies(messages)
	tokens := s.Usage.InputTokens + s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens
	if tokens == 0 { // Some servers tell the total alone, which will be in the context of the next call.
		tokens = s.Usage.TotalTokens
	}
	limit := a.limitOf(a.target)
	if before := a.chat.Status.Context; tokens == 0 && before != nil { // Of an interrupted call the provider tells nothing.
		tokens = before.Tokens
	}
	return &v1alpha1.ContextStatus{
		Tokens: tokens,
		Limit:  limit.Tokens, LimitSource: limit.Source, Replies: replies + 1, Compacted: compacted,
	}
}
