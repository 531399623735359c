// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"sync"
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

// lookout looks after the pod while a request is under way.
type lookout struct {
	stop context.CancelCauseFunc
	// unanswered says that a try has failed.
	unanswered func()
	looking    sync.WaitGroup
}

// lookOut ends the context of a request, which stop does, with ErrGone once the pod is known to be gone. The answer may
// take so long.
func (c *Client) lookOut(ctx context.Context, stop context.CancelCauseFunc, wait time.Duration) *lookout {
	failed := make(chan struct{})
	l := &lookout{stop: stop, unanswered: sync.OnceFunc(func() { close(failed) })}
	if c.knownGone() {
		stop(ErrGone)
	}
	if c.options.Gone != nil {
		l.looking.Go(func() { c.lookAfter(ctx, stop, min(wait, longPoll)+lateAfter, failed) })
	}
	return l
}

// lookAfter asks for the pod from then on when an answer is late, or a try has failed.
func (c *Client) lookAfter(ctx context.Context, stop context.CancelCauseFunc, after time.Duration,
	failed <-chan struct{}) {
	late := time.NewTimer(after)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
	case <-failed:
		rest(ctx, comeback)
	}
	for ctx.Err() == nil && !c.isGone(ctx) {
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
func (c *Client) isGone(ctx context.Context) bool {
	if c.options.Gone == nil {
		return false
	}
	c.mu.Lock()
	known, recent := c.gone, c.asked
	c.asked = true
	c.mu.Unlock()
	if known || recent {
		return known
	}
	time.AfterFunc(gonePause, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked = false
	})
	asking, cancel := context.WithTimeout(ctx, goneTime)
	defer cancel()
	gone := c.options.Gone(asking)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = c.gone || gone // No pod comes back.
	return c.gone
}

func (c *Client) knownGone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// final is the error of a request that is not made again. Who does not know the token, or does not speak the protocol,
// may be somebody who has got the address of a pod that is gone.
func (c *Client) final(ctx, asking context.Context, err error) error {
	refused, ok := errors.AsType[*protocol.Error](err)
	_, strange := errors.AsType[*AnswerError](err)
	stranger := strange || ok && refused.Code == protocol.Unauthenticated
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(asking), ErrGone), stranger && c.isGone(asking):
		return ErrGone
	}
	return err
}
