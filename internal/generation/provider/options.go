// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"

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
	{v1alpha1.ProviderAnthropic, false}: func(a asked) fantasy.ProviderOptions {
		return a.anthropic(a.Anthropic)
	},
	{v1alpha1.ProviderBedrock, false}: func(a asked) fantasy.ProviderOptions { return a.anthropic(a.Bedrock) },
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
