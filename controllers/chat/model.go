// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelconfig"
	"parley.dev/parley/internal/turn"
)

// modelOf is what a decision has to know of the configuration that answers. What it names and does not exist is left out:
// the configuration's own status says so.
func modelOf(configs []v1alpha1.ChatModelConfig, config *v1alpha1.ChatModelConfig) *turn.Model {
	m := &turn.Model{
		Alternative: alternative(config), Retry: config.Spec.Retry, ContextLimit: limitOf(config),
		ThresholdPercent: config.Spec.Compaction.ThresholdPercentOrDefault(),
		Titles:           config.Spec.Titles.On(), TurnSummaries: config.Spec.TurnSummaries.On(),
	}
	for _, ref := range config.Spec.Fallbacks {
		if fallback := modelconfig.Find(configs, ref.Name); fallback != nil {
			m.Fallbacks = append(m.Fallbacks, alternative(fallback))
		}
	}
	if config.Spec.Compaction == nil || config.Spec.Compaction.ModelConfigRef == nil {
		return m
	}
	if summarizer := modelconfig.Find(configs, config.Spec.Compaction.ModelConfigRef.Name); summarizer != nil {
		m.Summarizer = new(alternative(summarizer))
		if limit := limitOf(summarizer); limit > 0 && (m.ContextLimit == 0 || limit < m.ContextLimit) {
			m.ContextLimit = limit
		}
	}
	return m
}

func alternative(config *v1alpha1.ChatModelConfig) turn.Alternative {
	a := turn.Alternative{Config: config.Name, Name: config.Spec.Model}
	if config.Spec.Pricing != nil {
		a.Currency = config.Spec.Pricing.Currency
	}
	return a
}

func limitOf(config *v1alpha1.ChatModelConfig) int64 {
	if config.Spec.ContextLimit == nil {
		return 0
	}
	return *config.Spec.ContextLimit
}
