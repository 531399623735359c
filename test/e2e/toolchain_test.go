// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// sumGolden is the transcript of sums.
const sumGolden = "sum.txt"

func TestModelWritesFixesServesAndRevisitsProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sums())
	w.newSumChat("c")
	w.ready("c", sumLength)
	w.isGolden("c", sumGolden)
}
