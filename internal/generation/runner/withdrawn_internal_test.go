// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"testing"

	"parley.dev/parley/internal/generation/step"
)

func TestAbandonedAttemptWritesNothingOnceItsStepEnds(t *testing.T) {
	own, cancel := context.WithCancelCause(t.Context())
	working, interrupt := context.WithCancelCause(t.Context())
	a := &attempt{cancel: cancel, interrupt: func(cause error) {
		if own.Err() == nil {
			t.Error("its step ends while a result can still be written")
		}
		interrupt(cause)
	}}
	a.abandon(step.ErrInterrupted)
	if !step.Interrupted(working) {
		t.Errorf("the step ends because of %v", context.Cause(working))
	}
}
