// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"math"
	"regexp"
	"strings"

	"charm.land/fantasy"
	"google.golang.org/genai"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/wire"
)

// config are the settings of the call.
func (p *protocol) config(call *fantasy.Call, settings *wire.Settings) *genai.GenerationConfig {
	c := &genai.GenerationConfig{
		Temperature: narrow(call.Temperature), TopP: narrow(call.TopP), TopK: narrow(call.TopK),
		PresencePenalty: narrow(call.PresencePenalty), FrequencyPenalty: narrow(call.FrequencyPenalty),
		StopSequences: settings.Stop, ThinkingConfig: p.thinking(settings),
	}
	if call.MaxOutputTokens != nil {
		c.MaxOutputTokens = int32(min(*call.MaxOutputTokens, math.MaxInt32))
	}
	return c
}

// narrow is the number as Google's library has it.
func narrow[T int64 | float64](value *T) *float32 {
	if value == nil {
		return nil
	}
	return new(float32(*value))
}

func safetySettings(configured []v1beta1.GoogleSafetySetting) (all []*genai.SafetySetting) {
	for _, s := range configured {
		all = append(all, &genai.SafetySetting{Category: genai.HarmCategory(s.Category),
			Threshold: genai.HarmBlockThreshold(s.Threshold)})
	}
	return all
}

// budgeted are the models that take a budget of tokens for thinking; later ones take a level.
var budgeted = regexp.MustCompile(`gemini-[12]\.`)

// efforts are the budgets that Google documents for the efforts of OpenAI's protocol, and the levels. The least budget
// is what every model of the generation takes.
var efforts = map[v1beta1.ReasoningEffort]struct {
	budget int32
	level  genai.ThinkingLevel
}{
	v1beta1.EffortNone: {512, genai.ThinkingLevelMinimal}, v1beta1.EffortMinimal: {512, genai.ThinkingLevelMinimal},
	v1beta1.EffortLow: {1024, genai.ThinkingLevelLow}, v1beta1.EffortMedium: {8192, genai.ThinkingLevelMedium},
	v1beta1.EffortHigh: {24_576, genai.ThinkingLevelHigh}, v1beta1.EffortXHigh: {24_576, genai.ThinkingLevelHigh},
	v1beta1.EffortMax: {24_576, genai.ThinkingLevelHigh},
}

// thinking is how much the model is to think; nil: it is not set. An effort goes before the budget and the level of the
// options, and asks for the thoughts if there are to be any.
func (p *protocol) thinking(settings *wire.Settings) *genai.ThinkingConfig {
	var options v1beta1.GoogleThinkingConfig
	if google := settings.Provider.Google; google != nil && google.ThinkingConfig != nil {
		options = *google.ThinkingConfig
	} else if settings.Effort == "" {
		return nil
	}
	t := &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevel(options.ThinkingLevel)}
	if options.ThinkingBudget != nil {
		t.ThinkingBudget = new(int32(min(*options.ThinkingBudget, math.MaxInt32)))
	}
	if settings.Effort != "" {
		t.IncludeThoughts = settings.Effort != v1beta1.EffortNone
		t.ThinkingBudget, t.ThinkingLevel = p.effort(settings.Effort)
	}
	if options.IncludeThoughts != nil {
		t.IncludeThoughts = *options.IncludeThoughts
	}
	return t
}

// effort is the budget or the level for an effort.
func (p *protocol) effort(effort v1beta1.ReasoningEffort) (*int32, genai.ThinkingLevel) {
	row := efforts[effort]
	switch {
	case budgeted.MatchString(p.model):
		return &row.budget, ""
	case row.level == genai.ThinkingLevelMinimal && strings.Contains(p.model, "-pro"):
		return nil, genai.ThinkingLevelLow // The least that the pro models take.
	}
	return nil, row.level
}
