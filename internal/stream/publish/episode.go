// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/stream/framelog"
	"parley.dev/parley/internal/stream/relay"
)

const (
	// share is how long an episode gathers parts for each other open episode, so that all of them together make at most
	// 4000 writes a second. A single episode sends each part at once, and every episode its first one.
	share = 250 * time.Microsecond
	// maxGather bounds that: two frames of a screen.
	maxGather = 30 * time.Millisecond
)

// Episode is an attempt whose parts are being published. Close it, or its stream stays open.
type Episode struct {
	client *Client
	name   fence.Fence
	stop   context.CancelFunc
	done   chan struct{} // closed when the stream's goroutine has ended
	ending chan struct{} // closed when Close was called

	mu      sync.Mutex
	log     framelog.Log
	full    bool
	dropped int64
	closing bool
	changed chan struct{} // closed and replaced when log or closing changes and the stream waits
	waiting bool
	lost    error // why the relay accepts nothing more, ErrExists
}

func newEpisode(c *Client, name fence.Fence, last int64) *Episode {
	ctx, stop := context.WithCancel(context.Background())
	e := &Episode{client: c, name: name, stop: stop, done: make(chan struct{}), ending: make(chan struct{}),
		changed: make(chan struct{}), log: framelog.After(last)}
	c.live.Add(1)
	go func() {
		defer close(e.done)
		defer c.live.Add(-1)
		e.run(ctx, last)
	}()
	return e
}

// Publish adds a part of a role (Assistant, or Tool for the results of tools), and gives it the next number. It does
// not wait for the relay. After 1 MiB of encoded parts it drops the rest, as the relay would: they are a preview.
func (e *Episode) Publish(role string, p parts.Part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.full || e.closing || e.lost != nil {
		e.dropped++
		return
	}
	frame := parts.Frame{Seq: e.log.Last() + 1, Role: role, Part: p}
	line := frame.AppendJSON(nil)
	if e.log.Bytes()+len(line)+1 > relay.DefaultEpisodeBytes {
		e.full = true // Later parts would leave a gap.
		e.dropped++
		return
	}
	e.log.Append(line)
	e.notify()
}

// Dropped is the number of parts that were not sent because the episode was full, closed or lost.
func (e *Episode) Dropped() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// Close waits until the relay has every part and closes the episode there. It stops waiting when ctx is done; the
// attempt is not affected. Nothing may be published after it. It must be called exactly once.
func (e *Episode) Close(ctx context.Context) error {
	defer e.stop()
	e.mu.Lock()
	e.end()
	e.mu.Unlock()
	select {
	case <-e.done:
	case <-ctx.Done():
		e.stop()
		<-e.done
		return fmt.Errorf("closing episode %s: %w", e.name, ctx.Err())
	}
	if e.lost != nil {
		return nil // It is closed, or of another incarnation.
	}
	return e.client.Close(ctx, e.name)
}

// end ends the log. The caller holds mu.
func (e *Episode) end() {
	e.closing = true
	close(e.ending)
	e.notify()
}

// notify wakes the stream. The caller holds mu.
func (e *Episode) notify() {
	if e.waiting {
		e.waiting = false
		close(e.changed)
		e.changed = make(chan struct{})
	}
}

// run keeps a stream to the relay until everything was sent after Close, or ctx is done. last is the number of the last
// frame that the relay had when the episode was opened.
func (e *Episode) run(ctx context.Context, last int64) {
	for pauses := retry.Relay.Start(); ; {
		began := e.client.now()
		err := e.stream(ctx, last)
		if err == nil {
			return
		}
		if e.client.now().Sub(began) > retry.Relay.Max {
			pauses.Reset()
		}
		for {
			if errors.Is(err, ErrExists) {
				e.lose(err)
				return
			}
			if pauses.Wait(ctx, err) != nil {
				return
			}
			if last, err = e.client.open(ctx, e.name); err == nil {
				break
			}
		}
	}
}

func (e *Episode) lose(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost, e.log = err, framelog.Log{}
}

// stream sends the frames behind a number in one request, until the episode is closed. A relay that was restarted may
// have forgotten frames of an earlier incarnation, which are not sent again.
func (e *Episode) stream(ctx context.Context, after int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.mu.Lock()
	r := &body{ctx: ctx, e: e, after: max(after, e.log.Dropped())}
	e.mu.Unlock()
	return e.client.call(ctx, http.MethodPost, episodes+e.name.String()+"/frames", r, nil)
}

// body is that of the streamed request: it waits for parts while the episode is open.
type body struct {
	ctx context.Context
	e   *Episode
	// after is the number of the last frame that was taken from the log, and rest the bytes that were not handed over.
	after int64
	rest  []byte
	// upToDate is when everything had been handed over; zero if there is more.
	upToDate time.Time
}

// Read implements io.Reader. It hands over what there is, so that parts travel alone when there are few and together
// when there are many.
func (r *body) Read(p []byte) (int, error) {
	r.gather()
	for {
		n, changed, err := r.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
}

// gather waits for more parts, if the last ones have just been sent.
func (r *body) gather() {
	d := min(time.Duration(r.e.client.live.Load()-1)*share, maxGather) - r.e.client.now().Sub(r.upToDate)
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.e.ending:
	case <-r.ctx.Done():
	}
}

func (r *body) take(p []byte) (n int, changed <-chan struct{}, err error) {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	for n < len(p) {
		if len(r.rest) == 0 {
			r.rest, r.after = r.e.log.Behind(r.after)
		}
		if len(r.rest) == 0 {
			break
		}
		copied := copy(p[n:], r.rest)
		n, r.rest = n+copied, r.rest[copied:]
	}
	if n > 0 {
		r.upToDate = time.Time{}
		if len(r.rest) == 0 && r.after >= r.e.log.Last() {
			r.upToDate = r.e.client.now()
		}
		return n, nil, nil
	}
	if r.e.closing {
		return 0, nil, io.EOF
	}
	r.e.waiting = true
	return 0, r.e.changed, nil
}
