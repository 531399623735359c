// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"parley.dev/parley/internal/chat/machine"
)

func TestEveryEffectOfTheMachineIsCarriedOut(t *testing.T) {
	for _, effect := range machine.Effects() {
		if effects[effect] == nil {
			t.Errorf("nothing carries %s out", effect)
		}
	}
	if len(effects) != len(machine.Effects()) {
		t.Errorf("%d effects are carried out, the machine has %d", len(effects), len(machine.Effects()))
	}
}
