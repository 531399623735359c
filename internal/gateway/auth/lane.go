// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"

	"parley.dev/parley/internal/netguard/limit"
)

// errBusy means that too many questions are being asked. It does not mean that the API server is slow.
var errBusy = errors.New("too many callers are being reviewed")

// lane bounds how many questions are asked at the same time, and how many wait.
type lane struct {
	asked, waiting limit.Limiter
}

func newLane(most int) *lane {
	return &lane{asked: limit.New(int64(most)), waiting: limit.New(int64(most) * (1 + waitingPerReview))}
}

// enter waits for a turn, which lasts until leave is called.
func (l *lane) enter(ctx context.Context) (leave func(), err error) {
	if !l.waiting.TryAcquire(1) {
		return nil, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, reviewWait)
	defer cancel()
	release, err := l.asked.Acquire(ctx, 1)
	if err != nil {
		l.waiting.Release(1)
		return nil, errBusy
	}
	return func() { release(); l.waiting.Release(1) }, nil
}
