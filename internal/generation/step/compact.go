// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/prompt/compaction"
)

// compact asks the model for a summary of the context, all but the messages that nobody has answered yet.
func (p *Performer) compact(ctx context.Context, messages []v1alpha1.ChatMessage, to Publisher) Outcome {
	t, missing := p.steps.options.Models.Target(ctx, p.chat.Status.Generation.ModelConfig)
	if missing != nil {
		return Failed(missing)
	}
	p.target = t
	p.tools.awaitServers(ctx, messages)
	unanswered := compaction.Unanswered(messages)
	input := compaction.View(messages[:len(messages)-unanswered])
	if len(input) == 0 {
		return Failed(&v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorContextTooLong, Message: "The newest messages alone do not fit the model's context",
			Advice: "Send shorter ones, or name a model with a larger context",
		})
	}
	o := p.summarize(ctx, messages, input, to)
	if o.Kind != v1alpha1.OutcomeCompleted {
		o.Content = collect.Step{Usage: o.Content.Usage} // Half a summary is worth nothing.
		return o
	}
	if o.Content.ReplyOutcome == v1alpha1.ReplyRefused {
		return Failed(&v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorContentFiltered, Provider: string(t.Config.Spec.Provider),
			Message: t.Config.Spec.Model + " refused to summarize the conversation",
			Advice:  "Name another model in compaction.modelConfigRef, or start a new chat",
		}).PaidFor(o.Content)
	}
	if o.Content = onlyText(o.Content); len(o.Content.Parts) == 0 {
		return Failed(&v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorProviderError, Provider: string(t.Config.Spec.Provider),
			Message: fmt.Sprintf("%s wrote an empty summary of the conversation", t.Config.Spec.Model),
			Advice:  "Name another model in compaction.modelConfigRef, or start a new chat",
		}).PaidFor(o.Content)
	}
	p.compaction = &v1alpha1.CompactionAccount{
		Source: compactionSource(p.chat), Messages: int64(len(input)),
		ContextStart: p.chat.Status.History.Length - int64(unanswered),
	}
	if cause := p.chat.Status.Internal.Attempt.Compaction; cause != nil {
		p.compaction.CompactionCause = *cause
	}
	p.logCompaction(ctx, o.Content.Usage)
	return o
}

// summarize asks p.target for a summary of the input, and where that is too long for it, of less.
func (p *Performer) summarize(ctx context.Context, messages, input []v1alpha1.ChatMessage, to Publisher) Outcome {
	budget := compaction.Budget(limitOf(p.chat, p.target).Tokens, compactionSource(p.chat), input)
	o := p.askSummary(ctx, messages, compaction.Input(input, budget), to)
	if o.Err != nil && o.Err.Reason == v1alpha1.ErrorContextTooLong { // Without a summary the chat could not go on.
		o = p.askSummary(ctx, messages, compaction.Input(input, compaction.Less(budget, input)), to)
	}
	return o
}

// askSummary asks p.target for a summary of what it is shown.
func (p *Performer) askSummary(ctx context.Context, messages, shown []v1alpha1.ChatMessage, to Publisher) Outcome {
	built, ended := p.prompt(ctx, p.target, shown)
	if ended != nil {
		return *ended
	}
	r := p.request(p.target, built)
	r.call.ToolChoice = new(fantasy.ToolChoiceNone) // They are declared, because the conversation has calls of them.
	return p.ask(ctx, r, messages, publishAs(v1alpha1.RoleSystem, to))
}

func compactionSource(chat *v1alpha1.Chat) v1alpha1.CompactionSource {
	if source := chat.Status.Internal.Compaction; source != "" {
		return source
	}
	return v1alpha1.CompactionThreshold
}

// onlyText is the text of a step as its only part.
func onlyText(s collect.Step) collect.Step {
	text := (&v1alpha1.ChatMessageSpec{Parts: s.Parts}).Text()
	s.Parts, s.PendingCalls, s.CallsRequiringAction, s.Preview = nil, 0, 0, ""
	if said := strings.TrimSpace(text); said != "" {
		s.Parts = []v1alpha1.MessagePart{{Type: v1alpha1.PartText, Text: &said}}
	}
	return s
}

// logCompaction logs the numbers of a compaction, and nothing of what was said.
func (p *Performer) logCompaction(ctx context.Context, used v1alpha1.TokenUsage) {
	c := p.compaction
	p.task.Log.InfoContext(ctx, "the context was summarised",
		slog.String("source", string(c.Source)), slog.String("modelConfig", p.target.Config.Name),
		slog.Int64("messages", c.Messages),
		slog.Int("thresholdPercent", int(c.ThresholdPercent)), slog.Int("usagePercent", int(c.UsagePercent)),
		slog.Int64("contextTokens", c.ContextTokens), slog.Int64("contextLimit", c.ContextLimit),
		slog.Int64("inputTokens", used.InputTokens+used.CacheReadTokens+used.CacheWriteTokens),
		slog.Int64("summaryTokens", used.OutputTokens))
}
