// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"context"
	"log/slog"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/prompt/compaction"
)

// compact asks the model for a summary of the context without its unanswered messages.
func (p *Performer) compact(ctx context.Context, messages []v1beta1.ChatMessage, to Publisher) Outcome {
	t, missing := p.steps.options.Models.Target(ctx, p.chat.Status.Generation.ModelConfig)
	if missing != nil {
		return Failed(missing)
	}
	p.target = t
	p.tools.awaitServers(ctx, messages)
	unanswered := compaction.Unanswered(messages)
	view := compaction.View(messages[:len(messages)-unanswered])
	if len(view) == 0 {
		return Failed(&v1beta1.GenerationError{
			Reason: v1beta1.ErrorContextTooLong, Message: "The newest messages alone do not fit the model's context",
			Advice: "Send shorter ones, or name a model with a larger context",
		})
	}
	o := p.summarize(ctx, messages, prompt.Flatten(view), to)
	if o.Kind != v1beta1.OutcomeCompleted {
		return Outcome{Kind: o.Kind, Err: o.Err}.PaidFor(o.Content) // Half a summary is useless.
	}
	if o.Content.ReplyOutcome == v1beta1.ReplyRefused {
		return summaryError(t, v1beta1.ErrorContentFiltered, " refused to summarize the conversation").PaidFor(o.Content)
	}
	if o.Content = onlyText(o.Content); len(o.Content.Parts) == 0 {
		return summaryError(t, v1beta1.ErrorProviderError, " wrote an empty summary of the conversation").
			PaidFor(o.Content)
	}
	if o.Content.ReplyOutcome == v1beta1.ReplyMaxTokensReached {
		*o.Content.Parts[0].Text += cutSummary
	}
	p.compaction = &v1beta1.CompactionAccount{
		Source: compactionSource(p.chat), Messages: int64(len(view)),
		ContextStart: p.chat.Status.History.Length - int64(unanswered),
	}
	if cause := p.chat.Status.Internal.Attempt.Compaction; cause != nil {
		p.compaction.CompactionCause = *cause
	}
	p.logCompaction(ctx, o.Content.Usage)
	return o
}

// cutSummary marks an incomplete summary. Its end is what matters most: what is under way and still open.
const cutSummary = "\n\n[The summary ends here: it reached its limit of tokens. Its end may be missing: ask the user " +
	"where something is unclear.]"

func summaryError(t *models.Target, reason v1beta1.ErrorReason, problem string) Outcome {
	return Failed(&v1beta1.GenerationError{
		Reason: reason, Provider: string(t.Config.Spec.Provider), Message: t.Config.Spec.Model + problem,
		Advice: "Name another model in compaction.modelConfigRef, or start a new chat",
	})
}

// summarize asks p.target for a summary of the input, or of half of it if that is too long.
func (p *Performer) summarize(ctx context.Context, messages, input []v1beta1.ChatMessage, to Publisher) Outcome {
	budget := compaction.Budget(limitOf(p.chat, p.target).Tokens, compactionSource(p.chat), input)
	o := p.askSummary(ctx, messages, compaction.Input(input, budget), to)
	if o.Err != nil && o.Err.Reason == v1beta1.ErrorContextTooLong {
		o = p.askSummary(ctx, messages, compaction.Input(input, compaction.Less(budget, input)), to)
	}
	return o
}

// askSummary asks p.target for a summary of the input.
func (p *Performer) askSummary(ctx context.Context, messages, input []v1beta1.ChatMessage, to Publisher) Outcome {
	built, release, ended := p.prompt(ctx, p.target, input)
	if ended != nil {
		return *ended
	}
	defer release()
	r := p.request(p.target, built)
	r.call.ToolChoice = new(fantasy.ToolChoiceNone) // They are declared, because the conversation has calls.
	return p.ask(ctx, r, messages, publishAs(v1beta1.RoleSystem, to))
}

func compactionSource(chat *v1beta1.Chat) v1beta1.CompactionSource {
	return cmp.Or(chat.Status.Internal.Compaction, v1beta1.CompactionThreshold)
}

// onlyText is the text of a step as its only part.
func onlyText(s collect.Step) collect.Step {
	text := strings.TrimSpace(textOf(s.Parts))
	s.Parts, s.PendingCalls, s.CallsRequiringAction, s.Preview = nil, 0, 0, ""
	if text != "" {
		s.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: &text}}
	}
	return s
}

// logCompaction logs the numbers of a compaction, but no content.
func (p *Performer) logCompaction(ctx context.Context, used v1beta1.TokenUsage) {
	c := p.compaction
	p.task.Log.InfoContext(ctx, "the context was summarised",
		slog.String("source", string(c.Source)), slog.String("modelConfig", p.target.Config.Name),
		slog.Int64("messages", c.Messages),
		slog.Int("thresholdPercent", int(c.ThresholdPercent)), slog.Int("usagePercent", int(c.UsagePercent)),
		slog.Int64("contextTokens", c.ContextTokens), slog.Int64("contextLimit", c.ContextLimit),
		slog.Int64("inputTokens", used.InputTokens+used.CacheReadTokens+used.CacheWriteTokens),
		slog.Int64("summaryTokens", used.OutputTokens))
}
