// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"

	"parley.dev/parley/api/v1beta1"
)

// budgeted are the Claude models that take a budget of tokens for thinking: all up to 4.5. Later ones decide
// themselves and take an effort.
var budgeted = regexp.MustCompile(
	`claude-(?:[0-3]\b|instant|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|-\d{6,}|-v\d|-latest|[@:]))`)

// efforts are those that Claude takes, and which part of the output is for thinking, in percent, as OpenRouter divides
// it for the same efforts. Claude before 5 does not think by default.
var efforts = map[v1beta1.ReasoningEffort]struct {
	word    anthropic.OutputConfigEffort
	percent int64
}{
	v1beta1.EffortMinimal: {"low", 10}, v1beta1.EffortLow: {"low", 20}, v1beta1.EffortMedium: {"medium", 50},
	v1beta1.EffortHigh: {"high", 80}, v1beta1.EffortXHigh: {"xhigh", 95}, v1beta1.EffortMax: {"max", 95},
}

// think sets how much the model thinks.
func (b *builder) think() {
	model, display := strings.ToLower(b.spec.Model), string(b.options.ThinkingDisplay)
	if b.claude.Adaptive {
		display = cmp.Or(display, "summarized")
	}
	if b.settings.Effort == v1beta1.EffortNone {
		b.stopThinking()
		return
	}
	effort, budget := b.effort(model)
	b.params.OutputConfig.Effort = effort
	switch {
	case effort != "", budget > 0 && b.claude.Adaptive, b.claude.Thinks(): // Without the display, that shows no thoughts.
		b.params.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{
			Display: anthropic.ThinkingConfigAdaptiveDisplay(display)}
	case budget > 0:
		b.params.Thinking.OfEnabled = &anthropic.ThinkingConfigEnabledParam{BudgetTokens: budget,
			Display: anthropic.ThinkingConfigEnabledDisplay(display)}
	}
}

// stopThinking has a model that thinks by default not think, or as little as it can.
func (b *builder) stopThinking() {
	switch b.claude.off {
	case offByDefault:
	case offDisabled:
		b.params.Thinking.OfDisabled = new(anthropic.NewThinkingConfigDisabledParam())
	case offBetween:
		b.params.Thinking.OfBetweenTools = new(anthropic.NewThinkingConfigBetweenToolsParam())
	case offNever:
		b.warnIf(true, "reasoningEffort", "the model always thinks, here as little as it can")
		b.params.OutputConfig.Effort = anthropic.OutputConfigEffortLow
	}
}

// effort is that of the call, or else of the options: as a word, or as a budget of tokens. Servers that speak the
// protocol for models of others know budgets alone. A budget is part of the output, and Anthropic refuses one that
// leaves no room for text; it is between the least that Anthropic takes and the most that OpenRouter asks for.
func (b *builder) effort(model string) (word anthropic.OutputConfigEffort, budget int64) {
	row, most, setting := efforts[b.settings.Effort], b.params.MaxTokens, "reasoningEffort"
	switch thinking := b.options.Thinking; {
	case b.settings.Effort == "" && b.options.Effort != "":
		return anthropic.OutputConfigEffort(b.options.Effort), 0
	case b.settings.Effort == "" && thinking != nil:
		budget, setting = thinking.BudgetTokens, "thinking.budgetTokens"
	case strings.Contains(model, "claude") && !budgeted.MatchString(model):
		return row.word, 0
	case row.percent > 0:
		budget = max(1024, min(most*row.percent/100, 128_000, most-1))
	}
	if budget >= most && !b.claude.Adaptive {
		b.warnIf(true, setting, "maxOutputTokens leaves no room for it")
		return "", 0
	}
	return "", budget
}
