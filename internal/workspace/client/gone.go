// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// longPoll is how long an agent holds back the answer to a request that waits: 15 s. Meanwhile nobody can tell one
	// that has nothing to say from one that is gone.
	longPoll = 15 * time.Second
	// lateAfter is how much longer an answer takes until it is late: 3 s.
	lateAfter = 3 * time.Second
	// comeback is how long an agent that broke off has to be back before anybody asks for its pod: a second.
	comeback = time.Second
	// gonePause is the least time between two questions whether the pod is gone, and goneTime bounds each.
	gonePause, goneTime = 2 * time.Second, 5 * time.Second
)

// pod knows whether the pod of the workspace is gone.
type pod struct {
	// ask is Options.Gone.
	ask func(ctx context.Context) bool
	// gone is what ask has said; asked is true for a moment after that.
	gone, asked atomic.Bool
}

// lookout looks after the pod while a request is under way.
type lookout struct {
	stop context.CancelCauseFunc
	// unanswered says that a try has failed.
	unanswered func()
	looking    sync.WaitGroup
}

// lookOut ends the context of a request, which stop does, with ErrGone once the pod is known to be gone. The answer may
// take so long.
func (p *pod) lookOut(ctx context.Context, stop context.CancelCauseFunc, wait time.Duration) *lookout {
	failed := make(chan struct{})
	l := &lookout{stop: stop, unanswered: sync.OnceFunc(func() { close(failed) })}
	if p.gone.Load() {
		stop(ErrGone)
	}
	if p.ask != nil {
		l.looking.Go(func() { p.lookAfter(ctx, stop, min(wait, longPoll)+lateAfter, failed) })
	}
	return l
}

// lookAfter asks for the pod from then on when an answer is late, or a try has failed.
func (p *pod) lookAfter(ctx context.Context, stop context.CancelCauseFunc, after time.Duration,
	failed <-chan struct{}) {
	late := time.NewTimer(after)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
	case <-failed:
		rest(ctx, comeback)
	}
	for ctx.Err() == nil && !p.isGone(ctx) {
		rest(ctx, gonePause)
	}
	if ctx.Err() == nil {
		stop(ErrGone)
	}
}

// end ends the request.
func (l *lookout) end() {
	l.stop(nil)
	l.looking.Wait()
}

// isGone asks whether the pod is gone, unless somebody did a moment ago.
func (p *pod) isGone(ctx context.Context) bool {
	if p.ask == nil || p.gone.Load() || p.asked.Swap(true) {
		return p.gone.Load()
	}
	time.AfterFunc(gonePause, func() { p.asked.Store(false) })
	asking, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	if p.ask(asking) {
		p.gone.Store(true) // No pod comes back.
	}
	return p.gone.Load()
}

// final is the error of a request that is not made again. Who does not know the token, or does not speak the protocol,
// may be somebody who has got the address of a pod that is gone.
func (p *pod) final(ctx, asking context.Context, err error) error {
	refused, ok := errors.AsType[*protocol.Error](err)
	_, strange := errors.AsType[*AnswerError](err)
	stranger := strange || ok && refused.Code == protocol.Unauthenticated
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(asking), ErrGone), stranger && p.isGone(asking):
		return ErrGone
	}
	return err
}
