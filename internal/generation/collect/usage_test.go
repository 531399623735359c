// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"math"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

func TestUsageIsBoundToWhatTheAPITakes(t *testing.T) {
	for name, said := range map[string]fantasy.Usage{
		"below zero": {InputTokens: -5, OutputTokens: -7, TotalTokens: -12, ReasoningTokens: -1, CacheReadTokens: -2,
			CacheCreationTokens: -3},
		"the smallest": {InputTokens: math.MinInt64, CacheReadTokens: math.MinInt64, OutputTokens: math.MinInt64},
		"the largest": {InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, ReasoningTokens: math.MaxInt64,
			CacheReadTokens: math.MaxInt64, CacheCreationTokens: math.MaxInt64},
		"of both":           {InputTokens: math.MaxInt64, OutputTokens: -1, CacheReadTokens: math.MinInt64},
		"more from a cache": {InputTokens: 1, CacheReadTokens: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, provider := range []v1alpha1.ModelProvider{v1alpha1.ProviderOpenAICompatible, v1alpha1.ProviderGoogle,
				v1alpha1.ProviderAnthropic} {
				u := usageOf(provider, said)
				for _, count := range []int64{u.InputTokens, u.OutputTokens, u.ReasoningTokens, u.CacheReadTokens,
					u.CacheWriteTokens, u.TotalTokens} {
					check.Equal(t, u, true, count >= 0 && count <= 5*maxCount)
				}
			}
		})
	}
}

func TestUsageIsCountedFromATotalAlone(t *testing.T) {
	for total, want := range map[int64]int64{900: 900, 0: 0, -5: 0} {
		if got := usageOf(v1alpha1.ProviderOpenAICompatible,
			fantasy.Usage{TotalTokens: total}); got != (v1alpha1.TokenUsage{TotalTokens: want}) {
			t.Errorf("of %d: got %+v", total, got)
		}
	}
}
