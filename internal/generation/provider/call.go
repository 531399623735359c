// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	"charm.land/fantasy/providers/openrouter"

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
	adjust(&call, spec)
	call.ProviderOptions[wire.Key] = settings
	return call, nil
}

// adjust does for some providers what fantasy does not do for them.
func adjust(call *fantasy.Call, spec *v1alpha1.ChatModelConfigSpec) {
	switch spec.Provider {
	case v1alpha1.ProviderOpenAICompatible:
		call.ProviderOptions = withTopK(call, openaicompat.Name,
			func(o *openaicompat.ProviderOptions) *map[string]any { return &o.ExtraBody })
	case v1alpha1.ProviderOpenRouter:
		call.ProviderOptions = withTopK(call, openrouter.Name,
			func(o *openrouter.ProviderOptions) *map[string]any { return &o.ExtraBody })
	case v1alpha1.ProviderOpenAI, v1alpha1.ProviderAzure:
		if o, ok := call.ProviderOptions[openai.Name].(*openai.ProviderOptions); ok && o.MaxCompletionTokens != nil {
			call.MaxOutputTokens = nil // It is the newer name of the same, and no model takes both.
		}
	}
}

// withTopK sends topK in the body: OpenAI's protocol has none, but the servers that speak it for others do.
func withTopK[T any, P interface {
	*T
	fantasy.ProviderOptionsData
}](call *fantasy.Call, name string, extraBody func(P) *map[string]any) fantasy.ProviderOptions {
	if call.TopK == nil {
		return call.ProviderOptions
	}
	options, ok := call.ProviderOptions[name].(P)
	if !ok {
		options = P(new(T))
	}
	body := extraBody(options)
	if *body == nil {
		*body = map[string]any{}
	}
	if _, own := (*body)["top_k"]; !own {
		(*body)["top_k"] = *call.TopK
	}
	call.TopK = nil
	call.ProviderOptions[name] = options
	return call.ProviderOptions
}
