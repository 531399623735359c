// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
)

func TestAServerThatTellsATotalAloneIsCounted(t *testing.T) {
	for total, want := range map[int64]int64{900: 900, 0: 0, -5: 0} {
		if got := usageOf(v1alpha1.ProviderOpenAICompatible,
			fantasy.Usage{TotalTokens: total}); got != (v1alpha1.TokenUsage{TotalTokens: want}) {
			t.Errorf("of %d: got %+v", total, got)
		}
	}
}
