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
	// longPoll is how long an agent holds back the answer to a request that waits: 15 s. Meanwhile nobody can tell one that
	// has nothing to say from one that is gone.
	longPoll = 15 * time.Second
	// lateAfter is how much longer an answer takes until it is late: 3 s.
	lateAfter = 3 * time.Second
	// comeback is how long an agent that broke off has to be back before anybody asks for its pod: a second.
	comeback = time.Second
	// gonePause is the least time between two questions whether the pod is gone, and goneTime bounds each.
	gonePause, goneTime = 2 * time.Second, 5 * time.Second
)

// lookout is the context of a request. It ends with ErrGone once the pod is known to be gone.
type lookout struct {
	context.Context

	stop context.CancelCauseFunc
	// unanswered says that a try has failed.
	unanswered func()
	looking    sync.WaitGroup
}

// lookOut begins the context of a request whose answer may take so long.
func (c *Client) lookOut(ctx context.Context, wait time.Duration) *lookout {
	failed := make(chan struct{})
	l := &lookout{unanswered: sync.OnceFunc(func() { close(failed) })}
	l.Context, l.stop = context.WithCancelCause(ctx)
	if c.knownGone() {
		l.stop(ErrGone)
	}
	if c.options.Gone == nil {
		return l
	}
	l.looking.Go(func() {
		late := time.NewTimer(min(wait, longPoll) + lateAfter)
		defer late.Stop()
		select {
		case <-l.Done():
		case <-late.C:
		case <-failed:
			rest(l, comeback)
		}
		for l.Err() == nil && !c.isGone(l) {
			rest(l, gonePause)
		}
		if l.Err() == nil {
			l.stop(ErrGone)
		}
	})
	return l
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
	now := time.Now()
	known, recent := c.gone, now.Sub(c.askedAt) < gonePause
	if !known && !recent {
		c.askedAt = now
	}
	c.mu.Unlock()
	if known || recent {
		return known
	}
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
func (c *Client) final(ctx context.Context, asking *lookout, err error) error {
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
