// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley.dev/parley/internal/netguard/httpguard"
)

// ErrSilent cancels a call that has been silent for too long.
var ErrSilent = errors.New("the provider sent nothing for too long")

// silenceGuard cancels a call whose provider sends nothing for too long. It looks at the clock once in that time,
// whatever comes meanwhile.
type silenceGuard struct {
	notes  *httpguard.Notes
	most   time.Duration
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// GuardSilence cancels the call of the notes with ErrSilent once nothing has come for so long. The returned function
// ends that.
func GuardSilence(notes *httpguard.Notes, most time.Duration, cancel context.CancelCauseFunc) func() {
	g := &silenceGuard{notes: notes, most: most, cancel: cancel}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(most, g.look)
	return g.stop
}

func (g *silenceGuard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	if left := g.most - g.notes.Silence(); left > 0 {
		g.timer.Reset(left)
		return
	}
	g.cancel(ErrSilent)
}

func (g *silenceGuard) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
	g.timer.Stop()
}
