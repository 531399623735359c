// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

// A request that is refused makes an Event whose reason is that of the state machine.
func TestReasonsOfRefusedRequestsAreTheAPIs(t *testing.T) {
	got := map[v1beta1.EventReason]bool{}
	for _, event := range requested {
		for _, state := range machine.States() {
			for queued := range 2 {
				_, refused := machine.Lookup(state, event, machine.Facts{QueueLen: queued, QueueCap: 1})
				if state != machine.Invalid && refused != "" { // An invalid one is repaired before.
					got[v1beta1.EventReason(refused)] = true
				}
			}
		}
	}
	want := []v1beta1.EventReason{
		v1beta1.EventInvalidState, v1beta1.EventIsArchived, v1beta1.EventNotStarted, v1beta1.EventNothingToClear,
		v1beta1.EventNothingToCompact,
	}
	if reasons := slices.Sorted(maps.Keys(got)); !slices.Equal(reasons, want) {
		t.Errorf("requests are refused with %v, want %v", reasons, want)
	}
}
