// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"strings"
	"testing"

	"charm.land/fantasy"
)

func TestAnEndlessCaptionIsCut(t *testing.T) {
	piece := strings.Repeat("x", 1000)
	got, err := read(func(yield func(fantasy.StreamPart) bool) {
		for range 200_000 {
			if !yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, Delta: piece}) {
				return
			}
		}
		yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, Usage: fantasy.Usage{OutputTokens: 7}})
	})
	if err != nil || len(got.text) == 0 || len(got.text) > maxAnswer || got.usage.OutputTokens != 7 {
		t.Errorf("%d bytes, %+v, %v", len(got.text), got.usage, err)
	}
}
