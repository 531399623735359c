// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/stream/relay"
)

const (
	// share is how long an episode lets its parts gather for each other episode that is open: all of them together make at
	// most 4000 writes a second. An episode alone sends each part at once, and so does every episode its first one.
	share = 250 * time.Microsecond
	// maxGather bounds that: two frames of a screen, which nobody sees.
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
	log     []byte
	ends    []int
	seq     int64 // number of the last part, kept or dropped
	full    bool
	dropped int64
	closing bool
	changed chan struct{} // closed and replaced when log or closing changes and somebody waits
	waiting bool
	lost    error // why the relay takes nothing more, ErrExists
}

func newEpisode(c *Client, name fence.Fence, last int64) *Episode {
	ctx, stop := context.WithCancel(context.Background())
	e := &Episode{client: c, name: name, stop: stop, done: make(chan struct{}), ending: make(chan struct{}),
		changed: make(chan struct{}), seq: last}
	c.live.Add(1)
	go func() {
		defer close(e.done)
		defer c.live.Add(-1)
		e.run(ctx, last)
	}()
	return e
}

// Publish adds a part, spoken by a role (Assistant, or Tool for the results of tools), and gives it the next number. It
// does not wait for the relay. After 1 MiB of encoded parts it drops the rest, as the relay would: they are a preview.
func (e *Episode) Publish(role string, p parts.Part) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.full || e.closing || e.lost != nil {
		e.dropped++
		return
	}
	frame := parts.Frame{Seq: e.seq + 1, Role: role, Part: p}
	log := append(frame.AppendJSON(e.log), '\n')
	if len(log) > relay.DefaultEpisodeBytes {
		e.full = true // what follows would leave a gap
		e.dropped++
		return
	}
	e.seq++
	e.log = log
	e.ends = append(e.ends, len(e.log))
	e.notify()
}

// Dropped is the number of parts that were not sent because the episode was full, closed or lost.
func (e *Episode) Dropped() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// Close waits until the relay has every part and closes the episode there. If the relay stays away it gives up when ctx
// is done; the attempt is none the worse. Nothing may be published after it. It must be called exactly once.
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
		return nil // it is closed, or somebody else's
	}
	return e.client.Close(ctx, e.name)
}

// end says that nothing more comes. The caller holds mu.
func (e *Episode) end() {
	e.closing = true
	close(e.ending)
	e.notify()
}

// notify wakes the reader. The caller holds mu.
func (e *Episode) notify() {
	if e.waiting {
		e.waiting = false
		close(e.changed)
		e.changed = make(chan struct{})
	}
}

// run keeps a stream to the relay until everything was sent after Close, or ctx is done. last is the number of the last
// frame that the relay had when the episode was opened; those that are published since then may be in the log already.
func (e *Episode) run(ctx context.Context, last int64) {
	pauses := retry.Relay.Start()
	first := last + 1 // number of the first frame in log
	for {
		began := e.client.now()
		err := e.stream(ctx, last-first+1)
		if err == nil {
			return
		}
		if e.client.now().Sub(began) > retry.Relay.Max {
			pauses.Reset()
		}
		for {
			if final(err) {
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
	e.lost, e.log, e.ends = err, nil, nil
}

// stream sends the frames behind the first skip ones in one request, until the episode is closed.
func (e *Episode) stream(ctx context.Context, skip int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var opened relay.Opened
	return e.client.post(ctx, e.name, "/frames", &body{ctx: ctx, e: e, at: e.offset(skip)}, http.StatusOK, &opened)
}

// offset of the frame behind the first skip ones. A relay that was restarted has forgotten frames; it never has more
// than were sent.
func (e *Episode) offset(skip int64) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if skip = min(skip, int64(len(e.ends))); skip <= 0 {
		return 0
	}
	return e.ends[skip-1]
}

// body is that of the streamed request: it waits for parts as long as the episode is open.
type body struct {
	ctx context.Context
	e   *Episode
	at  int
	// upToDate is when everything that there was had been handed over; zero if there is more.
	upToDate time.Time
}

// Read implements io.Reader. It hands over whatever there is, so that parts travel alone when there are few and
// together when there are many.
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

// gather lets parts come together, if the last ones have just been sent.
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

func (r *body) take(p []byte) (int, <-chan struct{}, error) {
	r.e.mu.Lock()
	defer r.e.mu.Unlock()
	if n := copy(p, r.e.log[min(r.at, len(r.e.log)):]); n > 0 {
		r.at, r.upToDate = r.at+n, time.Time{}
		if r.at == len(r.e.log) {
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
