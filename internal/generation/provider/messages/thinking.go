// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"parley.dev/parley/api/v1alpha1"
)

var (
	// budgeted are the Claude models that take a budget of tokens for thinking: all up to 4.5. Later ones decide
	// themselves and take an effort.
	budgeted = regexp.MustCompile(
		`claude-(?:[0-3]\b|instant|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|-\d{6,}|-v\d|-latest|[@:]))`)
	// unbudgeted are those that refuse a budget.
	unbudgeted = regexp.MustCompile(`claude-(?:mythos-preview|opus-4-(?:[7-9]|[1-9]\d)(?:\D|$))`)
	// silent are those that besides show no thoughts unless they are asked for them.
	silent = regexp.MustCompile(`claude-(?:opus|sonnet|fable|mythos)-5`)
)

// efforts are those that Claude takes. It does not think at all unless it is told to.
var efforts = map[v1alpha1.ReasoningEffort]anthropic.OutputConfigEffort{
	v1alpha1.EffortMinimal: anthropic.OutputConfigEffortLow, v1alpha1.EffortLow: anthropic.OutputConfigEffortLow,
	v1alpha1.EffortMedium: anthropic.OutputConfigEffortMedium, v1alpha1.EffortHigh: anthropic.OutputConfigEffortHigh,
	v1alpha1.EffortXHigh: anthropic.OutputConfigEffortXhigh, v1alpha1.EffortMax: anthropic.OutputConfigEffortMax,
}

const (
	// minBudget is the smallest budget that Anthropic takes.
	minBudget = 1024
	// maxBudget is the largest one that OpenRouter asks Anthropic for.
	maxBudget = 128_000
)

// budgetPercent is which part of the output is for thinking, as OpenRouter divides it for the same efforts.
var budgetPercent = map[v1alpha1.ReasoningEffort]int64{
	v1alpha1.EffortMinimal: 10, v1alpha1.EffortLow: 20, v1alpha1.EffortMedium: 50, v1alpha1.EffortHigh: 80,
	v1alpha1.EffortXHigh: 95, v1alpha1.EffortMax: 95,
}

// think says how much the model thinks. Servers that speak the protocol for models of others know budgets alone.
func (b *builder) think() {
	model := strings.ToLower(b.spec.Model)
	var effort anthropic.OutputConfigEffort
	var budget int64
	switch asked := b.settings.Effort; {
	case asked == "":
		effort = anthropic.OutputConfigEffort(b.options.Effort)
		budget = b.budgetOfOptions()
	case strings.Contains(model, "claude") && !budgeted.MatchString(model):
		effort = efforts[asked]
	default:
		budget = b.budgetOf(asked)
	}
	display := string(b.options.ThinkingDisplay)
	if unbudgeted.MatchString(model) || silent.MatchString(model) {
		display = cmp.Or(display, string(anthropic.ThinkingConfigAdaptiveDisplaySummarized))
	}
	b.params.OutputConfig.Effort = effort
	switch {
	case effort != "", budget > 0 && unbudgeted.MatchString(model):
		b.params.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{
			Display: anthropic.ThinkingConfigAdaptiveDisplay(display)}
	case budget > 0:
		b.params.Thinking.OfEnabled = &anthropic.ThinkingConfigEnabledParam{BudgetTokens: budget,
			Display: anthropic.ThinkingConfigEnabledDisplay(display)}
	}
}

// budgetOfOptions is the budget that the configuration sets; 0: it sets none, or one that leaves nothing to say, such as
// in a reply for an advice, which has fewer tokens. Anthropic refuses that.
func (b *builder) budgetOfOptions() int64 {
	if b.options.Thinking == nil {
		return 0
	}
	if b.options.Thinking.BudgetTokens >= b.params.MaxTokens {
		b.leaveOut("thinking.budgetTokens", "maxOutputTokens leaves no room for it")
		return 0
	}
	return b.options.Thinking.BudgetTokens
}

// budgetOf is the budget of an effort; 0: the model does not think. It is part of the output, and leaves room for an
// answer.
func (b *builder) budgetOf(asked v1alpha1.ReasoningEffort) int64 {
	percent, room := budgetPercent[asked], b.params.MaxTokens-1
	switch {
	case percent == 0:
		return 0
	case room < minBudget:
		b.leaveOut("reasoningEffort", "maxOutputTokens leaves no room for it, 1025 are the least")
		return 0
	}
	return max(minBudget, min(b.params.MaxTokens*percent/100, maxBudget, room))
}
