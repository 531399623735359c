// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/modelconfig"
)

// ModelOf is what a decision has to know of the configuration that answers the chat. What it names and does not exist,
// or is disabled, is left out: the configuration's own status says so.
func ModelOf(configs []v1beta1.ChatModelConfig, config *v1beta1.ChatModelConfig, chat *v1beta1.Chat) *Model {
	learned := chat.Status.Internal.LearnedContextLimit
	compaction := chatclass.MergeCompaction(chat.Spec.Compaction, config.Spec.Compaction)
	m := &Model{
		Alternative: alternative(config), Retry: config.Spec.Retry, ContextLimit: modelconfig.ContextLimit(config, learned),
		ContextLimitConfig: config.Name,
		ThresholdPercent:   compaction.ThresholdPercentOrDefault(),
		Titles:             config.Spec.Titles.On(), TurnSummaries: config.Spec.TurnSummaries.On(),
	}
	for _, ref := range config.Spec.Fallbacks {
		if fallback := modelconfig.Enabled(configs, ref.Name); fallback != nil {
			m.Fallbacks = append(m.Fallbacks, alternative(fallback))
		}
	}
	if compaction == nil || compaction.ModelConfigRef == nil {
		return m
	}
	summarizer := modelconfig.Enabled(configs, compaction.ModelConfigRef.Name)
	if summarizer == nil {
		m.SummarizerMissing = compaction.ModelConfigRef.Name
		return m
	}
	m.Summarizer = new(alternative(summarizer))
	applySummarizerLimit(m, summarizer, learned)
	return m
}

// applySummarizerLimit lets the limit of the model that writes summaries count where it is less. What is too long for
// that model is cut, so that only a limit counts that somebody gave.
func applySummarizerLimit(m *Model, summarizer *v1beta1.ChatModelConfig, learned *v1beta1.LearnedContextLimit) {
	limit := modelconfig.ContextLimit(summarizer, learned)
	if limit.Source == v1beta1.ContextLimitConfigured &&
		(m.ContextLimit.Tokens == 0 || limit.Tokens < m.ContextLimit.Tokens) {
		m.ContextLimit, m.ContextLimitConfig = limit, summarizer.Name
	}
}

func alternative(config *v1beta1.ChatModelConfig) Alternative {
	a := Alternative{Config: config.Name, Name: config.Spec.Model}
	if config.Spec.Pricing != nil {
		a.Currency = config.Spec.Pricing.Currency
	}
	a.NotBefore = config.RetryAfter()
	return a
}
