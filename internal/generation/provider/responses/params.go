// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"regexp"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/wire"
)

var (
	// chatModels are models that do not think, though their names look like those of models that do.
	chatModels      = regexp.MustCompile(`(?i)gpt-5-chat`)
	reasoningModels = regexp.MustCompile(`(?i)(?:^|-)(?:o[134]|oss)|gpt-5|codex-|computer-use`)
	flexModels      = regexp.MustCompile(`(?:^|-)o3|o4-mini|gpt-5`)
	priorityModels  = regexp.MustCompile(`(?i)(?:^|-)o3|o4-mini|gpt-[45]`)
	// smallModels have no priority.
	smallModels = regexp.MustCompile(`(?i)gpt-5-nano`)
)

// reasons reports whether the model thinks before it answers.
func (p *protocol) reasons() bool {
	return reasoningModels.MatchString(p.spec.Model) && !chatModels.MatchString(p.spec.Model)
}

// optionsOf are the provider's options of a call; the zero value if there are none.
func optionsOf(call *fantasy.Call, provider v1alpha1.ModelProvider) v1alpha1.OpenAIResponsesOptions {
	given := wire.SettingsOf(call).Provider
	options := given.OpenAIResponses
	if provider == v1alpha1.ProviderAzure {
		options = given.AzureResponses
	}
	if options == nil {
		return v1alpha1.OpenAIResponsesOptions{}
	}
	return *options
}

// stores reports whether the provider keeps the replies: it then has their reasoning.
func stores(o *v1alpha1.OpenAIResponsesOptions) bool { return o.Store != nil && *o.Store }

// builder builds the parameters of a request.
type builder struct {
	*responses.ResponseNewParams

	call     *fantasy.Call
	settings wire.Settings
	options  v1alpha1.OpenAIResponsesOptions
	warnings []fantasy.CallWarning
}

func (b *builder) leaveOut(setting, why string) {
	b.warnings = append(b.warnings, wire.Unsupported(setting, why))
}

// params are the parameters of a call.
func (p *protocol) params(call *fantasy.Call) (*responses.ResponseNewParams, []fantasy.CallWarning) {
	o := optionsOf(call, p.spec.Provider)
	b := builder{call: call, settings: wire.SettingsOf(call), options: o}
	b.ResponseNewParams = &responses.ResponseNewParams{
		Model: p.spec.Model, MaxOutputTokens: option(call.MaxOutputTokens), Store: param.NewOpt(stores(&o)),
		Instructions: text(o.Instructions), MaxToolCalls: option(o.MaxToolCalls), TopLogprobs: option(o.TopLogProbs),
		ParallelToolCalls: option(o.ParallelToolCalls), SafetyIdentifier: text(o.SafetyIdentifier), User: text(o.User),
		PromptCacheKey: text(cmp.Or(o.PromptCacheKey, b.settings.CacheKey)),
	}
	b.Input.OfInputItemList = input(call.Prompt, p.reasons(), stores(&o))
	for _, entry := range o.Metadata {
		if b.Metadata == nil {
			b.Metadata = shared.Metadata{}
		}
		b.Metadata[entry.Name] = entry.Value
	}
	if o.TopLogProbs != nil {
		b.include(responses.ResponseIncludableMessageOutputTextLogprobs)
	}
	for _, name := range o.Include {
		b.include(responses.ResponseIncludable(name))
	}
	b.unknown()
	b.think(p.reasons())
	b.tier(p.spec.Model)
	b.format()
	b.tools()
	return b.ResponseNewParams, b.warnings
}

// unknown warns of what the protocol does not have.
func (b *builder) unknown() {
	for _, s := range []struct {
		name string
		set  bool
	}{
		{"topK", b.call.TopK != nil}, {"presencePenalty", b.call.PresencePenalty != nil},
		{"frequencyPenalty", b.call.FrequencyPenalty != nil}, {"stop", len(b.settings.Stop) > 0},
	} {
		if s.set {
			b.leaveOut(s.name, "")
		}
	}
}

// think sets what depends on whether the model thinks.
func (b *builder) think(reasons bool) {
	effort := cmp.Or(strings.ToLower(string(b.settings.Effort)), string(b.options.ReasoningEffort))
	if !reasons {
		b.Temperature, b.TopP = option(b.call.Temperature), option(b.call.TopP)
		if effort != "" {
			b.leaveOut("reasoningEffort", "reasoningEffort is not supported for non-reasoning models")
		}
		if b.options.ReasoningSummary != "" {
			b.leaveOut("reasoningSummary", "reasoningSummary is not supported for non-reasoning models")
		}
		return
	}
	b.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffort(effort),
		Summary: shared.ReasoningSummary(b.options.ReasoningSummary)}
	if b.call.Temperature != nil {
		b.leaveOut("temperature", "temperature is not supported for reasoning models")
	}
	if b.call.TopP != nil {
		b.leaveOut("topP", "topP is not supported for reasoning models")
	}
}

// tier sets the service tier, if the model has it.
func (b *builder) tier(model string) {
	tier := b.options.ServiceTier
	switch {
	case tier == "flex" && (!flexModels.MatchString(model) || chatModels.MatchString(model)):
		b.leaveOut("serviceTier", "flex processing is only available for o3, o4-mini, and gpt-5 models")
	case tier == "priority" && (!priorityModels.MatchString(model) || chatModels.MatchString(model) ||
		smallModels.MatchString(model)):
		b.leaveOut("serviceTier", "priority processing is only available for gpt-4, gpt-5 but gpt-5-nano, o3, and o4-mini models")
	default:
		b.ServiceTier = responses.ResponseNewParamsServiceTier(tier)
	}
}

func option[T comparable](value *T) (o param.Opt[T]) {
	if value != nil {
		o = param.NewOpt(*value)
	}
	return o
}

// text is an option that an empty text does not set.
func text(value string) (o param.Opt[string]) {
	if value != "" {
		o = param.NewOpt(value)
	}
	return o
}
