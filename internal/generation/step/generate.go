// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt/compaction"
)

// generate calls the model and collects its reply.
func (p *Performer) generate(ctx context.Context, messages []v1alpha1.ChatMessage, to Publisher) Outcome {
	t, missing := p.steps.options.Models.Target(ctx, p.chat.Status.Generation.ModelConfig)
	if missing != nil {
		return Failed(missing)
	}
	p.target = t
	built, ended := p.prompt(ctx, t, compaction.View(messages))
	if ended != nil {
		return *ended
	}
	p.tools.awaitServers(ctx, messages)
	r := p.request(t, built)
	format, invalid := p.wishes(ctx, &r, messages)
	if invalid != nil {
		return Failed(invalid)
	}
	r.warnings = append(r.warnings, p.tools.serverWarnings()...)
	p.left = r.left
	if unavailable := p.steps.options.ClusterUnavailable; unavailable != nil {
		p.noCluster = unavailable(ctx, p.chat)
	}
	p.task.Observed.ClientResults(messages)
	p.task.BeforeReply(t, messages)
	o := p.ask(ctx, r, messages, publishAs(v1alpha1.RoleAssistant, to))
	if o.Kind == v1alpha1.OutcomeCompleted {
		o.Content = p.tools.withRequired(o.Content)
		p.judged = format.judge(o.Content)
	}
	p.context = contextOf(p.chat, t, o.Content, messages)
	return o
}

// publishAs publishes parts as coming from the role.
func publishAs(role v1alpha1.MessageRole, to Publisher) func(parts.Part) {
	return func(part parts.Part) { to.Publish(string(role), part) }
}

func pendingCalls(s collect.Step) (calls []v1alpha1.ToolCall) {
	for i := range s.Parts {
		if call := s.Parts[i].ToolCall; call != nil && !call.ProviderExecuted {
			calls = append(calls, *call)
		}
	}
	return calls
}

// contextOf is how full the context was when the model gave this reply.
func contextOf(
	chat *v1alpha1.Chat, t *models.Target, s collect.Step, messages []v1alpha1.ChatMessage,
) *v1alpha1.ContextStatus {
	replies, compacted := compaction.Replies(messages)
	tokens := s.Usage.InputTokens + s.Usage.CacheReadTokens + s.Usage.CacheWriteTokens
	if tokens == 0 { // Some servers tell the total alone, which will be in the context of the next call.
		tokens = s.Usage.TotalTokens
	}
	// Of an interrupted call the provider tells nothing.
	if before := chat.Status.Context; tokens == 0 && before != nil {
		tokens = before.Tokens
	}
	limit := limitOf(chat, t)
	return &v1alpha1.ContextStatus{
		Tokens: tokens, Limit: limit.Tokens, LimitSource: limit.Source, Replies: replies + 1, Compacted: compacted,
	}
}

// limitOf is how many tokens the target's context holds, as far as it is known.
func limitOf(chat *v1alpha1.Chat, t *models.Target) modelconfig.Limit {
	return modelconfig.ContextLimit(t.Config, chat.Status.Internal.LearnedContextLimit)
}
