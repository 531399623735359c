// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
)

func TestTheDiagramDrawsAMoveOnce(t *testing.T) {
	var b strings.Builder
	renderDiagram(&b)
	seen := map[string]bool{}
	for line := range strings.SplitSeq(b.String(), "\n") {
		arrow, _, found := strings.Cut(line, ":")
		if found && seen[arrow] {
			t.Errorf("%s is drawn twice", arrow)
		}
		seen[arrow] = true
	}
	for _, want := range []string{"    [*] --> Running", "    Running --> Waiting", "    Invalid --> Error"} {
		if !seen[want] {
			t.Errorf("%s is not drawn", want)
		}
	}
}
