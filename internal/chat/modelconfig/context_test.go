// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelconfig

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
)

func TestContextLimitsOfCommonModelsAreKnown(t *testing.T) {
	for _, c := range []struct {
		provider v1beta1.ModelProvider
		model    string
		want     int64
	}{
		{v1beta1.ProviderAnthropic, "claude-sonnet-4-5", 200_000},
		{v1beta1.ProviderAnthropic, "claude-sonnet-4-5-20250929", 200_000},
		{v1beta1.ProviderAnthropic, "claude-3-5-sonnet-latest", 200_000},
		{v1beta1.ProviderAnthropic, "claude-opus-4-20250514", 200_000},
		{v1beta1.ProviderAnthropic, "claude-opus-4-6", 1_000_000},
		{v1beta1.ProviderBedrock, "anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000},
		{v1beta1.ProviderBedrock, "eu.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000},
		{v1beta1.ProviderBedrock, "global.anthropic.claude-opus-4-6-v1", 1_000_000},
		{v1beta1.ProviderOpenAI, "gpt-5", 272_000},
		{v1beta1.ProviderOpenAI, "gpt-5-2025-08-07", 272_000},
		{v1beta1.ProviderOpenAI, "gpt-5-chat-latest", 128_000},
		{v1beta1.ProviderOpenAI, "gpt-4-0613", 8_192},
		{v1beta1.ProviderOpenAI, "gpt-4-1106-preview", 128_000},
		{v1beta1.ProviderOpenAI, "GPT-4o-2024-08-06", 128_000},
		{v1beta1.ProviderAzure, "gpt-4.1-mini", 1_047_576},
		{v1beta1.ProviderGoogle, "gemini-2.5-flash", 1_048_576},
		{v1beta1.ProviderGoogle, "models/gemini-2.5-pro-preview-06-05", 1_048_576},
		{v1beta1.ProviderGoogle, "gemini-2.0-flash-001", 1_048_576},
		{v1beta1.ProviderGoogle, "gemini-flash-latest", 1_048_576},
		{v1beta1.ProviderOpenRouter, "anthropic/claude-sonnet-4.5", 200_000},
		{v1beta1.ProviderOpenRouter, "openai/gpt-4o:online", 128_000},
		{v1beta1.ProviderVercel, "openai/gpt-5", 272_000},
		{v1beta1.ProviderVercel, "google/gemini-2.5-pro", 1_048_576},

		// Nothing is guessed.
		{v1beta1.ProviderOpenAI, "gpt-4.7", 0},
		{v1beta1.ProviderOpenAI, "gpt-5-mega", 0},
		{v1beta1.ProviderAnthropic, "claude-sonnet-9", 0},
		{v1beta1.ProviderAnthropic, "gpt-5", 0},
		{v1beta1.ProviderAzure, "my-deployment", 0},
		{v1beta1.ProviderOpenRouter, "gpt-5", 0},
		{v1beta1.ProviderOpenRouter, "somebody/gpt-5", 0},
		{v1beta1.ProviderBedrock, "arn:aws:bedrock:eu-central-1:1:application-inference-profile/x", 0},
		{v1beta1.ProviderOpenAICompatible, "gpt-5", 0},
		{v1beta1.ProviderAnthropic, "", 0},
		{v1beta1.ProviderAnthropic, "-latest-latest", 0},
	} {
		if got := knownLimit(c.provider, c.model); got != c.want {
			t.Errorf("%s %s: got %d, want %d", c.provider, c.model, got, c.want)
		}
	}
}

func TestContextLimitUsesMostReliableSource(t *testing.T) {
	config := func(model string, limit *int64) *v1beta1.ChatModelConfig {
		c := config("main", false)
		c.Spec.Provider, c.Spec.Model, c.Spec.ContextLimit = v1beta1.ProviderOpenAI, model, limit
		return &c
	}
	learned := &v1beta1.LearnedContextLimit{ModelConfig: "main", Model: "gpt-4o", Tokens: 64_000}
	for name, c := range map[string]struct {
		config  *v1beta1.ChatModelConfig
		learned *v1beta1.LearnedContextLimit
		want    Limit
	}{
		"what a person says": {config("gpt-4o", new(int64(9000))), learned,
			Limit{9000, v1beta1.ContextLimitConfigured}},
		"what the provider said": {config("gpt-4o", nil), learned, Limit{64_000, v1beta1.ContextLimitRefusal}},
		"what it said of another model": {config("gpt-4.1", nil), learned,
			Limit{1_047_576, v1beta1.ContextLimitKnownModel}},
		"what it said of another's config": {config("gpt-4o", nil),
			&v1beta1.LearnedContextLimit{ModelConfig: "b", Model: "gpt-4o", Tokens: 5000},
			Limit{128_000, v1beta1.ContextLimitKnownModel}},
		"what is known of the model":        {config("gpt-4o", nil), nil, Limit{128_000, v1beta1.ContextLimitKnownModel}},
		"nothing of a model that is no one": {config("x", nil), nil, Limit{}},
	} {
		if got := ContextLimit(c.config, c.learned); got != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
