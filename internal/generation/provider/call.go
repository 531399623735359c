// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/wire"
)

// Call is a call with everything that the configuration says, and the effort that the turn's message asks for, if any.
// Prompt and tools have yet to be added. The warnings are about settings that it leaves out; the model itself warns of
// others.
func Call(spec *v1alpha1.ChatModelConfigSpec, asked v1alpha1.ReasoningEffort) (fantasy.Call, []fantasy.CallWarning) {
	effort := spec.ReasoningEffort.Effort(asked)
	maxTokens := spec.MaxOutputTokensOrDefault()
	call := fantasy.Call{
		MaxOutputTokens: &maxTokens, Temperature: spec.Temperature, TopP: spec.TopP, TopK: spec.TopK,
		PresencePenalty: spec.PresencePenalty, FrequencyPenalty: spec.FrequencyPenalty,
		ProviderOptions: callOptions(spec, effort),
	}
	if call.ProviderOptions == nil {
		call.ProviderOptions = fantasy.ProviderOptions{}
	}
	settings := &wire.Settings{Effort: effort}
	if spec.ProviderOptions != nil {
		settings.Provider = *spec.ProviderOptions
	}
	warnings := adjust(&call, spec, effort)
	call.ProviderOptions[wire.Key] = settings
	return call, warnings
}

// adjust does for some providers what fantasy does not do for them.
func adjust(call *fantasy.Call, spec *v1alpha1.ChatModelConfigSpec,
	effort v1alpha1.ReasoningEffort) []fantasy.CallWarning {
	switch spec.Provider {
	case v1alpha1.ProviderAnthropic, v1alpha1.ProviderBedrock:
		return adjustClaude(call, effort)
	}
	return nil
}

// withoutRoom takes out the setting that asks for more thinking than most tokens leave room for, and names it; empty:
// none does. Anthropic refuses a budget that leaves nothing to say, such as that of a reply for an advice, which has
// fewer tokens.
func withoutRoom(o *anthropic.ProviderOptions, most int64, effort v1alpha1.ReasoningEffort) (setting, why string) {
	switch {
	case o.Thinking != nil && o.Thinking.BudgetTokens >= most:
		o.Thinking = nil
		return "thinking.budgetTokens", "maxOutputTokens leaves no room for it"
	case o.Effort == nil && o.Thinking == nil && effort != "" && effort != v1alpha1.EffortNone:
		return "reasoningEffort", "maxOutputTokens leaves no room for it, 1025 are the least"
	}
	return "", ""
}

// adjustClaude leaves out what Claude refuses while it thinks; fantasy does so where it thinks by a budget alone.
func adjustClaude(call *fantasy.Call, effort v1alpha1.ReasoningEffort) (warnings []fantasy.CallWarning) {
	o, ok := call.ProviderOptions[anthropic.Name].(*anthropic.ProviderOptions)
	if !ok {
		return nil
	}
	leftOut := func(setting, why string) {
		warnings = append(warnings, fantasy.CallWarning{Type: fantasy.CallWarningTypeUnsupportedSetting, Setting: setting,
			Details: why})
	}
	if setting, why := withoutRoom(o, *call.MaxOutputTokens, effort); setting != "" {
		leftOut(setting, why)
	}
	if o.Effort == nil {
		return warnings
	}
	const thinking = "it is not supported while the model thinks"
	if call.Temperature != nil {
		leftOut("temperature", thinking)
	}
	if call.TopP != nil {
		leftOut("topP", thinking)
	}
	if call.TopK != nil {
		leftOut("topK", thinking)
	}
	call.Temperature, call.TopP, call.TopK = nil, nil, nil
	return warnings
}
