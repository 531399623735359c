// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// Usage is a provider's count of tokens in the one meaning that ChatMessages have.
func Usage(provider v1alpha1.ModelProvider, u fantasy.Usage) v1alpha1.TokenUsage {
	return usageOf(provider, u)
}

// usageOf makes the providers' counts one: input is what neither came from nor went into the cache, reasoning is part of
// the output, and the total is the sum of all. Google counts the cache as input and the reasoning apart; so do some servers
// that speak OpenAI's protocol with the reasoning, which their total shows.
func usageOf(provider v1alpha1.ModelProvider, u fantasy.Usage) v1alpha1.TokenUsage {
	switch provider {
	case v1alpha1.ProviderGoogle:
		u.InputTokens = max(0, u.InputTokens-u.CacheReadTokens)
		u.OutputTokens += u.ReasoningTokens
	case v1alpha1.ProviderOpenAICompatible:
		if u.TotalTokens == u.InputTokens+u.CacheReadTokens+u.OutputTokens+u.ReasoningTokens {
			u.OutputTokens += u.ReasoningTokens
		}
	}
	return v1alpha1.TokenUsage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheCreationTokens,
		TotalTokens: u.InputTokens + u.CacheReadTokens + u.CacheCreationTokens + u.OutputTokens,
	}
}
