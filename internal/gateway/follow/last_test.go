// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"testing"

	"parley.dev/parley/test/kit/check"
)

func TestAClientMayBeginWithTheNewestMessages(t *testing.T) {
	w := newWorld()
	tell(w, w.follow(t, Position{}, 0))
	for last, want := range map[int64][]string{1: {"6.0.7"}, 2: {"5.0.6", "6.0.7"},
		100: {"1.0.1", "2.0.2", "3.0.3", "4.0.4", "4.0.5", "5.0.6", "6.0.7"}} {
		got := show(numbered(w.follow(t, Position{Last: last}, 0).waitID("6.0.7")))
		check.Equal(t, fmt.Sprintf("the last %d", last), want, got)
	}
}
