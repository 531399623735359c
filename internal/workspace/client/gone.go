// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// longPoll is how long an agent holds back the answer to a request that waits. Meanwhile an idle agent looks like
	// one that is gone.
	longPoll = 15 * time.Second
	// lateAfter is how much longer an answer takes until it is late.
	lateAfter = 3 * time.Second
	// comeback is how long an agent that closed the connection has to come back before the pod is checked.
	comeback = time.Second
	// gonePause is the least time between two checks of the pod, and goneTime bounds each.
	gonePause, goneTime = 2 * time.Second, 5 * time.Second
)

// pod knows whether the pod of the workspace is gone.
type pod struct {
	// isGone is Options.Gone.
	isGone func(ctx context.Context) bool
	// gone is its last result; checked is true for a moment after that.
	gone, checked atomic.Bool
}

// watch checks the pod from then on when an answer is late, or a try has failed. It stops the request with ErrGone.
func (p *pod) watch(ctx context.Context, stop context.CancelCauseFunc, late time.Duration, failed <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-time.After(late):
	case <-failed:
		_ = retry.Sleep(ctx, comeback)
	}
	for ctx.Err() == nil {
		if p.check(ctx) {
			stop(ErrGone)
		}
		_ = retry.Sleep(ctx, gonePause)
	}
}

// check reports whether the pod is gone. It shares the result of a check of a moment ago.
func (p *pod) check(ctx context.Context) bool {
	if p.isGone == nil || p.gone.Load() || p.checked.Swap(true) {
		return p.gone.Load()
	}
	time.AfterFunc(gonePause, func() { p.checked.Store(false) })
	ctx, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	if p.isGone(ctx) {
		p.gone.Store(true) // No pod comes back.
	}
	return p.gone.Load()
}

// final is the error of a request that is not repeated. A server that refuses the token, or does not follow the
// protocol, may have the address of a pod that is gone.
func (p *pod) final(caller, asking context.Context, err error) error {
	refused, ok := errors.AsType[*protocol.Error](err)
	_, invalid := errors.AsType[*AnswerError](err)
	isOther := invalid || ok && refused.Code == protocol.Unauthenticated
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(context.Cause(asking), ErrGone), isOther && p.check(asking):
		return ErrGone
	}
	return err
}
