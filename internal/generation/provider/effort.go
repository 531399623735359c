// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"regexp"
	"strings"

	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
)

// openAIEfforts are the efforts of OpenAI's protocols: all of them, in lower case.
var openAIEfforts = map[v1alpha1.ReasoningEffort]openai.ReasoningEffort{
	v1alpha1.EffortNone: openai.ReasoningEffortNone, v1alpha1.EffortMinimal: openai.ReasoningEffortMinimal,
	v1alpha1.EffortLow: openai.ReasoningEffortLow, v1alpha1.EffortMedium: openai.ReasoningEffortMedium,
	v1alpha1.EffortHigh: openai.ReasoningEffortHigh, v1alpha1.EffortXHigh: openai.ReasoningEffortXHigh,
	v1alpha1.EffortMax: openai.ReasoningEffortMax,
}

// openAIEffort sets the effort, if there is one.
func openAIEffort(set **openai.ReasoningEffort, effort v1alpha1.ReasoningEffort) {
	if effort != "" {
		*set = new(openAIEfforts[effort])
	}
}

// budgetedClaude are the Claude models that take a budget of tokens for thinking: all up to 4.5. Later ones decide
// themselves and take an effort.
var budgetedClaude = regexp.MustCompile(
	`claude-(?:[0-3]\b|instant|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|-\d{6,}|-v\d|-latest|[@:]))`)

// anthropicEfforts are the efforts that Claude takes. It does not think at all unless it is told to.
var anthropicEfforts = map[v1alpha1.ReasoningEffort]anthropic.Effort{
	v1alpha1.EffortMinimal: anthropic.EffortLow, v1alpha1.EffortLow: anthropic.EffortLow,
	v1alpha1.EffortMedium: anthropic.EffortMedium,
	v1alpha1.EffortHigh:   anthropic.EffortHigh, v1alpha1.EffortXHigh: anthropic.EffortXHigh,
	v1alpha1.EffortMax: anthropic.EffortMax,
}

const (
	// minClaudeBudget is the smallest budget that Anthropic takes.
	minClaudeBudget = 1024
	// maxClaudeBudget is the largest one that OpenRouter asks Anthropic for.
	maxClaudeBudget = 128_000
)

// budgetPercent is which part of maxOutputTokens is for thinking, as OpenRouter divides it for the same efforts.
var budgetPercent = map[v1alpha1.ReasoningEffort]int64{
	v1alpha1.EffortMinimal: 10, v1alpha1.EffortLow: 20, v1alpha1.EffortMedium: 50, v1alpha1.EffortHigh: 80,
	v1alpha1.EffortXHigh: 95, v1alpha1.EffortMax: 95,
}

// anthropicEffort sets the effort. Servers that speak Anthropic's protocol for models of others know budgets alone.
func anthropicEffort(o *anthropic.ProviderOptions, spec *v1alpha1.ChatModelConfigSpec,
	effort v1alpha1.ReasoningEffort) {
	if effort == "" {
		return
	}
	o.Effort, o.Thinking = nil, nil
	name := strings.ToLower(spec.Model)
	if strings.Contains(name, "claude") && !budgetedClaude.MatchString(name) {
		if e, ok := anthropicEfforts[effort]; ok {
			o.Effort = &e
		}
		return
	}
	room := spec.MaxOutputTokensOrDefault() - 1 // The budget is part of the output, and must leave room for an answer.
	if percent := budgetPercent[effort]; percent > 0 && room >= minClaudeBudget {
		budget := max(minClaudeBudget, min(spec.MaxOutputTokensOrDefault()*percent/100, maxClaudeBudget, room))
		o.Thinking = &anthropic.ThinkingProviderOption{BudgetTokens: budget}
	}
}

// ThinksOnlyIfTold reports whether the provider's models think only where they are told to, so that all of them can be
// told not to: Claude. It refuses a call that leaves no room for the thoughts that it is told to have.
func ThinksOnlyIfTold(p v1alpha1.ModelProvider) bool {
	return p == v1alpha1.ProviderAnthropic || p == v1alpha1.ProviderBedrock
}
