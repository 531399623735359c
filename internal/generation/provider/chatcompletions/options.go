// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
)

// options sets those that the configuration has for its provider. It returns the fields that go before all others.
func (b *builder) options() *runtime.RawExtension {
	options := &b.settings.Provider
	switch b.spec.Provider {
	case v1beta1.ProviderOpenAI:
		b.openAI(valueOf(options.OpenAI))
	case v1beta1.ProviderAzure:
		b.openAI(valueOf(options.Azure))
	case v1beta1.ProviderOpenRouter:
		return b.openRouter(valueOf(options.OpenRouter))
	case v1beta1.ProviderVercel:
		return b.vercel(valueOf(options.Vercel))
	default:
		o := valueOf(options.OpenAICompatible)
		b.set(object{"user": o.User, "reasoning_effort": b.effort(o.ReasoningEffort)})
		return o.ExtraBody
	}
	return nil
}

// tiered are the names of OpenAI's models that are served in other tiers.
var tiered = regexp.MustCompile(`(?:^|-)o3|o4-mini|gpt-5`)

func (b *builder) openAI(o v1beta1.OpenAIOptions) {
	metadata := map[string]string{}
	for _, entry := range o.Metadata {
		metadata[entry.Name] = entry.Value
	}
	b.set(object{
		"metadata":   metadata,
		"logit_bias": biasOf(o.LogitBias), "logprobs": o.LogProbs, "top_logprobs": o.TopLogProbs, "store": o.Store,
		"user": o.User, "safety_identifier": o.SafetyIdentifier, "prompt_cache_key": o.PromptCacheKey,
		"service_tier": o.ServiceTier, "verbosity": o.TextVerbosity, "max_completion_tokens": o.MaxCompletionTokens,
		"reasoning_effort": b.effort(o.ReasoningEffort),
	})
	if o.MaxCompletionTokens != nil { // It is the newer name of the same, and no model takes both.
		delete(b.fields, "max_tokens")
	}
	if o.Prediction != nil {
		b.fields["prediction"] = object{"type": "content", "content": o.Prediction.Content}
	}
	if b.fields["tools"] != nil { // OpenAI refuses it without tools.
		b.set(object{"parallel_tool_calls": o.ParallelToolCalls})
	}
	name := strings.ToLower(b.spec.Model)
	switch newer := tiered.MatchString(name); {
	case o.ServiceTier == "flex" && !newer:
		b.leaveOut("flex processing is only available for o3, o4-mini and gpt-5 models", "service_tier")
	case o.ServiceTier == "priority" && !newer && !strings.Contains(name, "gpt-4"):
		b.leaveOut("priority processing is only available for gpt-4, gpt-5, o3 and o4-mini models", "service_tier")
	}
}

func (b *builder) openRouter(o v1beta1.OpenRouterOptions) *runtime.RawExtension {
	b.set(object{"logit_bias": biasOf(o.LogitBias), "logprobs": o.LogProbs, "user": o.User,
		"parallel_tool_calls": o.ParallelToolCalls, "reasoning": b.reasoning(o.Reasoning),
		"usage": object{"include": o.IncludeUsage == nil || *o.IncludeUsage}})
	if o.Provider != nil {
		b.fields["provider"] = openRouterProvider(*o.Provider)
	}
	return o.ExtraBody
}

// openRouterProvider is a v1beta1.OpenRouterProvider in OpenRouter's words.
type openRouterProvider struct {
	AllowFallbacks    *bool    `json:"allow_fallbacks,omitempty"`
	DataCollection    string   `json:"data_collection,omitempty"`
	Ignore            []string `json:"ignore,omitempty"`
	Only              []string `json:"only,omitempty"`
	Order             []string `json:"order,omitempty"`
	Quantizations     []string `json:"quantizations,omitempty"`
	RequireParameters *bool    `json:"require_parameters,omitempty"`
	Sort              string   `json:"sort,omitempty"`
}

func (b *builder) vercel(o v1beta1.VercelOptions) *runtime.RawExtension {
	b.set(object{"logit_bias": biasOf(o.LogitBias), "logprobs": o.LogProbs, "top_logprobs": o.TopLogProbs, "user": o.User,
		"parallel_tool_calls": o.ParallelToolCalls, "reasoning": b.reasoning(o.Reasoning)})
	if o.Gateway != nil {
		b.set(object{"providerOptions": object{"gateway": o.Gateway}, "models": o.Gateway.Models})
	}
	return o.ExtraBody
}

// effort is how much the model is to think. That of the call goes before that of the options.
func (b *builder) effort(configured v1beta1.OpenAIReasoningEffort) string {
	return cmp.Or(strings.ToLower(string(b.settings.Effort)), string(configured))
}

// reasoning is how much a model behind a gateway is to think; nil: it is not set. Gateways have no effort above xhigh.
func (b *builder) reasoning(configured *v1beta1.GatewayReasoning) *gatewayReasoning {
	effort := b.effort("")
	if effort == "" {
		return (*gatewayReasoning)(configured)
	}
	if b.settings.Effort == v1beta1.EffortMax {
		effort = "xhigh"
	}
	return &gatewayReasoning{Effort: v1beta1.GatewayReasoningEffort(effort), Exclude: valueOf(configured).Exclude}
}

// gatewayReasoning is a v1beta1.GatewayReasoning in the words of the gateways.
type gatewayReasoning struct {
	Effort    v1beta1.GatewayReasoningEffort `json:"effort,omitempty"`
	Enabled   *bool                          `json:"enabled,omitempty"`
	Exclude   *bool                          `json:"exclude,omitempty"`
	MaxTokens *int64                         `json:"max_tokens,omitempty"`
}

func biasOf(entries []v1beta1.LogitBias) map[string]int64 {
	bias := map[string]int64{}
	for _, each := range entries {
		bias[strconv.FormatInt(each.Token, 10)] = each.Bias
	}
	return bias
}

// valueOf is the value, or the zero value if there is none.
func valueOf[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}
