// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package seats_test

import (
	"testing"

	"parley.dev/parley/internal/gateway/seats"
)

func TestNoCallerTakesWhatAllHave(t *testing.T) {
	s := seats.New(3, 2)
	take := func(caller string, want seats.Full) func() {
		t.Helper()
		leave, full := s.Take(caller)
		if full != want || (leave == nil) != (want != seats.No) {
			t.Errorf("%s: full is %d, want %d", caller, full, want)
		}
		return leave
	}
	first := take("anna", seats.No)
	take("anna", seats.No)
	take("anna", seats.ForCaller)
	take("ben", seats.No)
	take("ben", seats.ForAll)
	first()
	take("ben", seats.No)
	take("anna", seats.ForAll)
}
