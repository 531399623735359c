// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import "parley.dev/parley/api/v1alpha1"

// optionsOf are the options that the configuration's provider takes, by their names in fantasy. A test beside the code
// that decodes them holds the two together.
func optionsOf(spec *v1alpha1.ChatModelConfigSpec) map[string]option {
	if spec.Transport == v1alpha1.TransportResponses {
		return responsesOptions
	}
	return options[spec.Provider]
}

var options = map[v1alpha1.ModelProvider]map[string]option{
	v1alpha1.ProviderOpenAI:           openAIOptions,
	v1alpha1.ProviderAzure:            openAIOptions,
	v1alpha1.ProviderAnthropic:        anthropicOptions,
	v1alpha1.ProviderBedrock:          anthropicOptions,
	v1alpha1.ProviderGoogle:           googleOptions,
	v1alpha1.ProviderOpenAICompatible: {"extra_body": mapOf(option{}), "reasoning_effort": effort, "user": text},
	v1alpha1.ProviderOpenRouter:       openRouterOptions,
	v1alpha1.ProviderVercel:           vercelOptions,
}

var (
	effort        = option{kind: isText, oneOf: []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}}
	gatewayEffort = option{kind: isText, oneOf: []string{"none", "minimal", "low", "medium", "high", "xhigh"}}
)

var openAIOptions = map[string]option{
	"log_probs":             boolean,
	"logit_bias":            mapOf(integer),
	"max_completion_tokens": integer,
	"metadata":              mapOf(text),
	"parallel_tool_calls":   boolean,
	"prediction":            object(map[string]option{"content": text}),
	"prompt_cache_key":      text,
	"reasoning_effort":      effort,
	"safety_identifier":     text,
	"service_tier":          text,
	"store":                 boolean,
	"text_verbosity":        text,
	"top_log_probs":         integer,
	"user":                  text,
}

var responsesOptions = map[string]option{
	"include":              listOf(text),
	"instructions":         text,
	"logprobs":             {},
	"max_tool_calls":       integer,
	"metadata":             mapOf(text),
	"parallel_tool_calls":  boolean,
	"previous_response_id": {refused: "each call sends the whole conversation"},
	"prompt_cache_key":     text,
	"reasoning_effort":     effort,
	"reasoning_summary":    text,
	"safety_identifier":    text,
	"service_tier":         text,
	"store":                boolean,
	"strict_json_schema":   boolean,
	"text_verbosity":       text,
	"user":                 text,
}

var anthropicOptions = map[string]option{
	"disable_parallel_tool_use": boolean,
	"effort":                    {kind: isText, oneOf: []string{"low", "medium", "high", "xhigh", "max"}},
	"extra_body":                mapOf(option{}),
	"send_reasoning":            boolean,
	"thinking":                  object(map[string]option{"budget_tokens": {kind: isInteger, positive: true}}),
	"thinking_display":          {kind: isText, oneOf: []string{"summarized", "omitted"}},
}

var googleOptions = map[string]option{
	"cached_content":  text,
	"safety_settings": listOf(object(map[string]option{"category": text, "threshold": text})),
	"thinking_config": {kind: isObject, exclusive: [2]string{"thinking_budget", "thinking_level"},
		fields: map[string]option{
			"include_thoughts": boolean, "thinking_budget": integer, "thinking_level": text,
		}},
}

var openRouterOptions = map[string]option{
	"extra_body":          mapOf(option{}),
	"include_usage":       boolean,
	"log_probs":           boolean,
	"logit_bias":          mapOf(integer),
	"parallel_tool_calls": boolean,
	"provider": object(map[string]option{
		"allow_fallbacks": boolean, "data_collection": text, "ignore": listOf(text), "only": listOf(text),
		"order":         listOf(text),
		"quantizations": listOf(text), "require_parameters": boolean, "sort": text,
	}),
	"reasoning": gatewayReasoning,
	"user":      text,
}

var gatewayReasoning = object(map[string]option{"effort": gatewayEffort, "enabled": boolean, "exclude": boolean,
	"max_tokens": integer})

var vercelOptions = map[string]option{
	"byok": {refused: "a ChatModelConfig is no place for keys, since everybody may read it who may read " +
		"the object"},
	"extra_body":          mapOf(option{}),
	"logit_bias":          mapOf(integer),
	"logprobs":            boolean,
	"parallel_tool_calls": boolean,
	"providerOptions": object(map[string]option{"models": listOf(text), "order": listOf(text),
		"zeroDataRetention": boolean}),
	"reasoning":    gatewayReasoning,
	"top_logprobs": integer,
	"user":         text,
}
