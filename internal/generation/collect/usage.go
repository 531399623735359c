// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

// maxCount bounds each count: a thousand of the largest contexts that there are. A provider can say anything, and sums
// of such counts must not overflow.
const maxCount = 1_000_000_000

// usageOf makes the providers' counts one: input is what neither came from nor went into the cache, reasoning is part
// of the output, as package provider sees to, and the total is the sum of all. Google counts the cache as input. Where
// nothing but a total is told, it is that. No count is below 0 or above a thousand million.
func usageOf(provider v1alpha1.ModelProvider, u fantasy.Usage) v1alpha1.TokenUsage {
	for _, count := range []*int64{&u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.ReasoningTokens, &u.CacheReadTokens,
		&u.CacheCreationTokens} {
		*count = min(max(0, *count), maxCount)
	}
	if provider == v1alpha1.ProviderGoogle {
		u.InputTokens = max(0, u.InputTokens-u.CacheReadTokens)
	}
	if u.InputTokens+u.CacheReadTokens+u.CacheCreationTokens+u.OutputTokens == 0 { // Some servers tell the total alone.
		return v1alpha1.TokenUsage{ReasoningTokens: u.ReasoningTokens, TotalTokens: max(0, u.TotalTokens)}
	}
	return v1alpha1.TokenUsage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens,
		CacheReadTokens: u.CacheReadTokens, CacheWriteTokens: u.CacheCreationTokens,
		TotalTokens: u.InputTokens + u.CacheReadTokens + u.CacheCreationTokens + u.OutputTokens,
	}
}
