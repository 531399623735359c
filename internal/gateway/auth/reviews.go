// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	// DefaultReviews is how many questions the API server is asked at the same time, unless Options say otherwise.
	DefaultReviews = 16
	// reviewWait is how long a question waits for those before it.
	reviewWait = 5 * time.Second
	// waitingPerReview is how many questions may wait for each that may be asked.
	waitingPerReview = 16
)

// errBusy means that too many questions are being asked. It says nothing about the API server.
var errBusy = errors.New("too many callers are being reviewed")

// lane bounds how many questions are asked at the same time, and how many wait.
type lane struct {
	slots   chan struct{}
	waiting atomic.Int64
}

func newLane(slots int) *lane { return &lane{slots: make(chan struct{}, slots)} }

// enter waits for a slot. The caller leaves it by calling leave.
func (l *lane) enter(ctx context.Context) (leave func(), err error) {
	if l.waiting.Add(1) > int64(cap(l.slots))*(1+waitingPerReview) {
		l.waiting.Add(-1)
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, reviewWait)
	defer cancel()
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; l.waiting.Add(-1) }, nil
	case <-ctx.Done():
		l.waiting.Add(-1)
		return nil, errBusy
	}
}
