// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/google"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
)

// asked is what is asked of a provider besides: spec.providerOptions, and the effort, which goes before what they say
// about the same.
type asked struct {
	v1alpha1.ProviderOptions
	spec   *v1alpha1.ChatModelConfigSpec
	effort v1alpha1.ReasoningEffort
}

// callOptions are the options of one call. Each call needs options of its own, since fantasy changes them.
func callOptions(spec *v1alpha1.ChatModelConfigSpec, effort v1alpha1.ReasoningEffort) fantasy.ProviderOptions {
	options, known := optionsOf[protocol{spec.Provider, spec.Transport == v1alpha1.TransportResponses}]
	if !known || spec.ProviderOptions == nil && effort == "" {
		return nil
	}
	a := asked{spec: spec, effort: effort}
	if spec.ProviderOptions != nil {
		a.ProviderOptions = *spec.ProviderOptions.DeepCopy()
	}
	return options(a)
}

// protocol is what a member of v1alpha1.ProviderOptions belongs to.
type protocol struct {
	provider  v1alpha1.ModelProvider
	responses bool
}

// optionsOf are fantasy's options of each protocol.
var optionsOf = map[protocol]func(asked) fantasy.ProviderOptions{
	{v1alpha1.ProviderOpenAI, true}: func(a asked) fantasy.ProviderOptions { return a.responses(a.OpenAIResponses) },
	{v1alpha1.ProviderAzure, true}:  func(a asked) fantasy.ProviderOptions { return a.responses(a.AzureResponses) },
	{v1alpha1.ProviderAnthropic, false}: func(a asked) fantasy.ProviderOptions {
		return a.anthropic(a.Anthropic)
	},
	{v1alpha1.ProviderBedrock, false}: func(a asked) fantasy.ProviderOptions { return a.anthropic(a.Bedrock) },
	{v1alpha1.ProviderGoogle, false}:  asked.google,
}

func (a asked) responses(given *v1alpha1.OpenAIResponsesOptions) fantasy.ProviderOptions {
	o := &openai.ResponsesProviderOptions{}
	if given != nil {
		*o = openai.ResponsesProviderOptions{
			Instructions: said(given.Instructions), MaxToolCalls: given.MaxToolCalls, Metadata: metadataOf(given.Metadata),
			ParallelToolCalls: given.ParallelToolCalls, PromptCacheKey: said(given.PromptCacheKey),
			ReasoningEffort:  said(openai.ReasoningEffort(given.ReasoningEffort)),
			ReasoningSummary: said(given.ReasoningSummary), SafetyIdentifier: said(given.SafetyIdentifier),
			ServiceTier: said(openai.ServiceTier(given.ServiceTier)), Store: given.Store,
			StrictJSONSchema: given.StrictJSONSchema, User: said(given.User),
		}
		for _, name := range given.Include {
			o.Include = append(o.Include, openai.IncludeType(name))
		}
		if given.TopLogProbs != nil {
			o.Logprobs = int(*given.TopLogProbs)
		}
	}
	openAIEffort(&o.ReasoningEffort, a.effort)
	return fantasy.ProviderOptions{openai.Name: o}
}

func (a asked) anthropic(given *v1alpha1.AnthropicOptions) fantasy.ProviderOptions {
	o := &anthropic.ProviderOptions{}
	if given != nil {
		*o = anthropic.ProviderOptions{
			SendReasoning: given.SendReasoning, Effort: said(anthropic.Effort(given.Effort)),
			ThinkingDisplay:        said(anthropic.ThinkingDisplay(given.ThinkingDisplay)),
			DisableParallelToolUse: given.DisableParallelToolUse, ExtraBody: bodyOf(given.ExtraBody),
		}
		if given.Thinking != nil {
			o.Thinking = &anthropic.ThinkingProviderOption{BudgetTokens: given.Thinking.BudgetTokens}
		}
	}
	anthropicEffort(o, a.spec, a.effort)
	return fantasy.ProviderOptions{anthropic.Name: o}
}

func (a asked) google() fantasy.ProviderOptions {
	o := &google.ProviderOptions{}
	if given := a.Google; given != nil {
		o.CachedContent = given.CachedContent
		for _, s := range given.SafetySettings {
			o.SafetySettings = append(o.SafetySettings, google.SafetySetting{Category: s.Category, Threshold: s.Threshold})
		}
		if t := given.ThinkingConfig; t != nil {
			o.ThinkingConfig = &google.ThinkingConfig{
				ThinkingBudget: t.ThinkingBudget, IncludeThoughts: t.IncludeThoughts, ThinkingLevel: said(t.ThinkingLevel),
			}
		}
	}
	googleEffort(o, a.spec.Model, a.effort)
	return fantasy.ProviderOptions{google.Name: o}
}
