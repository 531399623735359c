// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/google"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	"charm.land/fantasy/providers/openrouter"
	"charm.land/fantasy/providers/vercel"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelconfig"
)

// callOptions are the options of one call: spec.providerOptions, and the effort in the provider's own terms, which goes
// before what they say about the same. Each call needs options of its own, since fantasy changes them.
func callOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (fantasy.ProviderOptions, error) {
	prepare, ok := optionMakers[spec.Provider]
	if !ok || spec.ProviderOptions == nil && effort == "" {
		return nil, nil
	}
	if spec.Transport == v1alpha1.TransportResponses {
		prepare = responsesOptions
	}
	if wrong := modelconfig.CheckOptions(spec); wrong != nil {
		return nil, wrong
	}
	name, options, err := prepare(spec, effort)
	if err != nil {
		return nil, err
	}
	return fantasy.ProviderOptions{name: options}, nil
}

// optionMaker decodes the options and puts the effort into them. The name is the one under which fantasy looks them up.
type optionMaker func(*v1alpha1.ChatModelConfigSpec, v1alpha1.ReasoningEffort) (name string,
	options fantasy.ProviderOptionsData, err error)

var optionMakers = map[v1alpha1.ModelProvider]optionMaker{
	v1alpha1.ProviderOpenAI:           openAIOptions,
	v1alpha1.ProviderAzure:            openAIOptions,
	v1alpha1.ProviderAnthropic:        anthropicOptions,
	v1alpha1.ProviderBedrock:          anthropicOptions,
	v1alpha1.ProviderGoogle:           googleOptions,
	v1alpha1.ProviderOpenAICompatible: compatibleOptions,
	v1alpha1.ProviderOpenRouter:       openRouterOptions,
	v1alpha1.ProviderVercel:           vercelOptions,
}

func openAIOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string,
	fantasy.ProviderOptionsData, error) {
	o := &openai.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	openAIEffort(&o.ReasoningEffort, effort)
	return openai.Name, o, nil
}

func responsesOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string,
	fantasy.ProviderOptionsData, error) {
	o := &openai.ResponsesProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	openAIEffort(&o.ReasoningEffort, effort)
	return openai.Name, o, nil
}

func compatibleOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string,
	fantasy.ProviderOptionsData, error) {
	o := &openaicompat.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	openAIEffort(&o.ReasoningEffort, effort)
	return openaicompat.Name, o, nil
}

func anthropicOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string,
	fantasy.ProviderOptionsData, error) {
	o := &anthropic.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	anthropicEffort(o, spec, effort)
	return anthropic.Name, o, nil
}

func googleOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string,
	fantasy.ProviderOptionsData, error) {
	o := &google.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	googleEffort(o, spec.Model, effort)
	return google.Name, o, nil
}

func openRouterOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string,
	fantasy.ProviderOptionsData, error) {
	o := &openrouter.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	if effort != "" {
		if o.Reasoning == nil {
			o.Reasoning = &openrouter.ReasoningOptions{}
		}
		o.Reasoning.Enabled, o.Reasoning.MaxTokens, o.Reasoning.Effort = nil, nil,
			new(openrouter.ReasoningEffort(gatewayEffort(effort)))
	}
	return openrouter.Name, o, nil
}

func vercelOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) (string,
	fantasy.ProviderOptionsData, error) {
	o := &vercel.ProviderOptions{}
	if err := decodeOptions(spec, o); err != nil {
		return "", nil, err
	}
	if effort != "" {
		if o.Reasoning == nil {
			o.Reasoning = &vercel.ReasoningOptions{}
		}
		o.Reasoning.Enabled, o.Reasoning.MaxTokens, o.Reasoning.Effort = nil, nil,
			new(vercel.ReasoningEffort(gatewayEffort(effort)))
	}
	return vercel.Name, o, nil
}

// decodeOptions decodes spec.providerOptions, which have been checked, into fantasy's type.
func decodeOptions[T any](spec *v1alpha1.ChatModelConfigSpec, o *T) error {
	if spec.ProviderOptions == nil || len(spec.ProviderOptions.Raw) == 0 {
		return nil
	}
	if json.Unmarshal(spec.ProviderOptions.Raw, o) != nil {
		return &modelconfig.OptionError{Problem: "cannot be read"} // The error can quote a value.
	}
	return nil
}
