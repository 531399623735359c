// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"time"

	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/retry"
)

// ErrSilent cancels a call that has been silent for too long.
var ErrSilent = errors.New("the provider sent nothing for too long")

// GuardSilence cancels the call of the notes with ErrSilent once its provider has sent nothing for the timeout. It
// returns then, or when ctx, the call's, is done.
func GuardSilence(ctx context.Context, notes *httpguard.Notes, timeout time.Duration, cancel context.CancelCauseFunc) {
	for left := timeout; left > 0; left = timeout - notes.Silence() {
		if retry.Sleep(ctx, left) != nil {
			return
		}
	}
	cancel(ErrSilent)
}
