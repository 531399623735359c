// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"
	"charm.land/fantasy/providers/openrouter"
	"charm.land/fantasy/providers/vercel"

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
	{v1alpha1.ProviderOpenAI, false}:           func(a asked) fantasy.ProviderOptions { return a.openAI(a.OpenAI) },
	{v1alpha1.ProviderAzure, false}:            func(a asked) fantasy.ProviderOptions { return a.openAI(a.Azure) },
	{v1alpha1.ProviderOpenAICompatible, false}: asked.compatible,
	{v1alpha1.ProviderOpenRouter, false}:       asked.openRouter,
	{v1alpha1.ProviderVercel, false}:           asked.vercel,
}

func (a asked) openAI(given *v1alpha1.OpenAIOptions) fantasy.ProviderOptions {
	o := &openai.ProviderOptions{}
	if given != nil {
		*o = openai.ProviderOptions{
			LogitBias: biasOf(given.LogitBias), LogProbs: given.LogProbs, TopLogProbs: given.TopLogProbs,
			ParallelToolCalls: given.ParallelToolCalls, User: said(given.User),
			ReasoningEffort: said(openai.ReasoningEffort(given.ReasoningEffort)), Store: given.Store,
			MaxCompletionTokens: given.MaxCompletionTokens, TextVerbosity: said(given.TextVerbosity),
			Metadata: metadataOf(given.Metadata), PromptCacheKey: said(given.PromptCacheKey),
			SafetyIdentifier: said(given.SafetyIdentifier), ServiceTier: said(given.ServiceTier),
		}
		if given.Prediction != nil {
			o.Prediction = map[string]any{"content": given.Prediction.Content}
		}
	}
	openAIEffort(&o.ReasoningEffort, a.effort)
	return fantasy.ProviderOptions{openai.Name: o}
}

func (a asked) compatible() fantasy.ProviderOptions {
	o := &openaicompat.ProviderOptions{}
	if given := a.OpenAICompatible; given != nil {
		o.User, o.ExtraBody = said(given.User), bodyOf(given.ExtraBody)
		o.ReasoningEffort = said(openai.ReasoningEffort(given.ReasoningEffort))
	}
	openAIEffort(&o.ReasoningEffort, a.effort)
	return fantasy.ProviderOptions{openaicompat.Name: o}
}

func (a asked) openRouter() fantasy.ProviderOptions {
	o := &openrouter.ProviderOptions{}
	var reasoning *v1alpha1.GatewayReasoning
	if given := a.OpenRouter; given != nil {
		reasoning = given.Reasoning
		o.ExtraBody, o.IncludeUsage, o.LogitBias = bodyOf(given.ExtraBody), given.IncludeUsage, biasOf(given.LogitBias)
		o.LogProbs, o.ParallelToolCalls, o.User = given.LogProbs, given.ParallelToolCalls, said(given.User)
		if p := given.Provider; p != nil {
			o.Provider = &openrouter.Provider{
				Order: p.Order, AllowFallbacks: p.AllowFallbacks, RequireParameters: p.RequireParameters,
				DataCollection: said(p.DataCollection), Only: p.Only, Ignore: p.Ignore, Quantizations: p.Quantizations,
				Sort: said(p.Sort),
			}
		}
	}
	if r := gatewayReasoning(reasoning, a.effort); r != nil {
		o.Reasoning = &openrouter.ReasoningOptions{Enabled: r.Enabled, Exclude: r.Exclude, MaxTokens: r.MaxTokens,
			Effort: said(openrouter.ReasoningEffort(r.Effort))}
	}
	return fantasy.ProviderOptions{openrouter.Name: o}
}

func (a asked) vercel() fantasy.ProviderOptions {
	o := &vercel.ProviderOptions{}
	var reasoning *v1alpha1.GatewayReasoning
	if given := a.Vercel; given != nil {
		reasoning = given.Reasoning
		o.ExtraBody, o.LogitBias, o.LogProbs = bodyOf(given.ExtraBody), biasOf(given.LogitBias), given.LogProbs
		o.ParallelToolCalls, o.TopLogProbs, o.User = given.ParallelToolCalls, given.TopLogProbs, said(given.User)
		if g := given.Gateway; g != nil {
			o.ProviderOptions = &vercel.GatewayProviderOptions{Order: g.Order, Models: g.Models,
				ZeroDataRetention: g.ZeroDataRetention}
		}
	}
	if r := gatewayReasoning(reasoning, a.effort); r != nil {
		o.Reasoning = &vercel.ReasoningOptions{Enabled: r.Enabled, Exclude: r.Exclude, MaxTokens: r.MaxTokens,
			Effort: said(vercel.ReasoningEffort(r.Effort))}
	}
	return fantasy.ProviderOptions{vercel.Name: o}
}
