// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelconfig"
)

// ModelOf is what a decision has to know of the configuration that answers. What it names and does not exist, or is disabled, is left out:
// the configuration's own status says so.
func ModelOf(configs []v1alpha1.ChatModelConfig, config *v1alpha1.ChatModelConfig, learned *v1alpha1.LearnedContextLimit) *Model {
	m := &Model{
		Alternative: alternative(config), Retry: config.Spec.Retry, ContextLimit: modelconfig.ContextLimit(config, learned), ContextLimitConfig: config.Name,
		ThresholdPercent: config.Spec.Compaction.ThresholdPercentOrDefault(),
		Titles:           config.Spec.Titles.On(), TurnSummaries: config.Spec.TurnSummaries.On(),
	}
	for _, ref := range config.Spec.Fallbacks {
		if fallback := modelconfig.Enabled(configs, ref.Name); fallback != nil {
			m.Fallbacks = append(m.Fallbacks, alternative(fallback))
		}
	}
	if config.Spec.Compaction == nil || config.Spec.Compaction.ModelConfigRef == nil {
		return m
	}
	if summarizer := modelconfig.Enabled(configs, config.Spec.Compaction.ModelConfigRef.Name); summarizer != nil {
		m.Summarizer = new(alternative(summarizer))
		narrow(m, summarizer, learned)
	}
	return m
}

// narrow lets the limit of the model that writes summaries count where it is less. What is too long for that model is cut, so that only a
// limit counts that somebody gave.
func narrow(m *Model, summarizer *v1alpha1.ChatModelConfig, learned *v1alpha1.LearnedContextLimit) {
	limit := modelconfig.ContextLimit(summarizer, learned)
	if limit.Source == v1alpha1.ContextLimitConfigured && (m.ContextLimit.Tokens == 0 || limit.Tokens < m.ContextLimit.Tokens) {
		m.ContextLimit, m.ContextLimitConfig = limit, summarizer.Name
	}
}

func alternative(config *v1alpha1.ChatModelConfig) Alternative {
	a := Alternative{Config: config.Name, Name: config.Spec.Model}
	if config.Spec.Pricing != nil {
		a.Currency = config.Spec.Pricing.Currency
	}
	return a
}

// NamedModels are the names in the messages that could begin a turn, or began the one under way.
func NamedModels(f *Facts) (names []string) {
	for _, messages := range [][]Message{f.Open, f.Queued} {
		for i := range messages {
			names = append(names, messages[i].ModelConfig)
		}
	}
	if f.Edited != nil {
		names = append(names, f.Edited.ModelConfig)
	}
	if t := f.Chat.Status.Turn; t != nil { // A turn that failed may go on after a compaction.
		names = append(names, t.ModelConfig)
	}
	if f.Truncated != nil && f.Truncated.Turn != nil {
		names = append(names, f.Truncated.Turn.ModelConfig)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}
