// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect_test

import (
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/test/kit/check"
)

func TestReasoningKeepsItsTitle(t *testing.T) {
	for text, want := range map[string]string{
		"**Looking at the pods**\n\nFirst I list them.": "Looking at the pods",
		"**Looking at the pods**":                       "Looking at the pods",
		"**Bold** words begin this.":                    "",
		"First **I** list them.":                        "",
		"":                                              "",
	} {
		a := collect.NewAccumulator(v1alpha1.ProviderOpenAI, 1, nil)
		for _, part := range []fantasy.StreamPart{
			{Type: fantasy.StreamPartTypeReasoningStart, ID: "r"},
			{Type: fantasy.StreamPartTypeReasoningDelta, ID: "r", Delta: text},
			{Type: fantasy.StreamPartTypeReasoningEnd, ID: "r"},
			{Type: fantasy.StreamPartTypeTextDelta, ID: "t", Delta: "Done."},
		} {
			a.Add(&part)
		}
		check.Equal(t, text, want, a.Finish().Parts[0].Title)
	}
}
