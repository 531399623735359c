// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

// Whoever may delete messages can create a note under the name of one, before the chat has found out.
func TestNoteIsExcludedFromModelContext(t *testing.T) {
	for name, turn := range map[string]int{"in place of the turn's message": 1, "in place of an earlier one": 0} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, 0)
			s.says("first")
			s.says("second")
			chat := s.turnOf(&s.messages[1], 2, 2)
			s.messages[turn].Spec.Visibility = v1alpha1.VisibleToPeople
			if messages, err := s.loader().Load(t.Context(), chat); !Broken(err) {
				t.Errorf("the model sees %d messages: %v", len(messages), err)
			}
		})
	}
}
