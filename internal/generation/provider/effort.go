// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"regexp"
	"strings"

	"charm.land/fantasy/providers/google"
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

// gatewayEffort is the effort as OpenRouter and Vercel call it: they know none above xhigh.
func gatewayEffort(effort v1alpha1.ReasoningEffort) v1alpha1.GatewayReasoningEffort {
	if effort == v1alpha1.EffortMax {
		effort = v1alpha1.EffortXHigh
	}
	return v1alpha1.GatewayReasoningEffort(strings.ToLower(string(effort)))
}

// budgetedGemini are the Gemini models that take a budget of tokens for thinking; later ones take a level.
var budgetedGemini = regexp.MustCompile(`gemini-[12]\.`)

// geminiBudgets are those that Google documents for the efforts of OpenAI's protocol. The least is what every model of
// the generation takes; thinking cannot be turned off through fantasy.
var geminiBudgets = map[v1alpha1.ReasoningEffort]int64{
	v1alpha1.EffortNone: 512, v1alpha1.EffortMinimal: 512, v1alpha1.EffortLow: 1024, v1alpha1.EffortMedium: 8192,
	v1alpha1.EffortHigh: 24_576, v1alpha1.EffortXHigh: 24_576, v1alpha1.EffortMax: 24_576,
}

var geminiLevels = map[v1alpha1.ReasoningEffort]google.ThinkingLevel{
	v1alpha1.EffortNone: google.ThinkingLevelMinimal, v1alpha1.EffortMinimal: google.ThinkingLevelMinimal,
	v1alpha1.EffortLow: google.ThinkingLevelLow, v1alpha1.EffortMedium: google.ThinkingLevelMedium,
	v1alpha1.EffortHigh: google.ThinkingLevelHigh, v1alpha1.EffortXHigh: google.ThinkingLevelHigh,
	v1alpha1.EffortMax: google.ThinkingLevelHigh,
}

// googleEffort sets the effort, and asks for the thoughts if there are to be any.
func googleEffort(o *google.ProviderOptions, model string, effort v1alpha1.ReasoningEffort) {
	if effort == "" {
		return
	}
	if o.ThinkingConfig == nil {
		o.ThinkingConfig = &google.ThinkingConfig{}
	}
	t := o.ThinkingConfig
	t.ThinkingBudget, t.ThinkingLevel = nil, nil
	name := strings.ToLower(model)
	if budgetedGemini.MatchString(name) {
		t.ThinkingBudget = new(geminiBudgets[effort])
	} else {
		t.ThinkingLevel = new(geminiLevels[effort])
		if strings.Contains(name, "-pro") && *t.ThinkingLevel == google.ThinkingLevelMinimal {
			t.ThinkingLevel = new(google.ThinkingLevelLow) // The least that the pro models take.
		}
	}
	if t.IncludeThoughts == nil && effort != v1alpha1.EffortNone {
		t.IncludeThoughts = new(true)
	}
}

// ThinksOnlyIfTold reports whether the provider's models think only where they are told to, so that all of them can be
// told not to: Claude. It refuses a call that leaves no room for the thoughts that it is told to have.
func ThinksOnlyIfTold(p v1alpha1.ModelProvider) bool {
	return p == v1alpha1.ProviderAnthropic || p == v1alpha1.ProviderBedrock
}
