// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
)

// Step and NewAccumulator are package collect's, under the names by which the tests of package provider know them.
type Step = collect.Step

// NewAccumulator is collect.NewAccumulator.
func NewAccumulator(provider v1alpha1.ModelProvider, version int64, usedIDs []string) *collect.Accumulator {
	return collect.NewAccumulator(provider, version, usedIDs)
}
