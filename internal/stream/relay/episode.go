// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"sync"
	"time"

	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/stream/framelog"
)

// episode is the parts of one attempt. It is in one of three states:
// awaited by subscribers but not opened, open, closed.
type episode struct {
	name fence.Fence

	mu          sync.Mutex
	opened      bool
	incarnation string
	closed      bool
	closedAt    time.Time
	touched     time.Time
	writers     int
	// log is every kept frame as a line of JSON.
	log framelog.Log
	// received is the number of the last frame that came in, kept or dropped.
	received int64
	// full is true once a frame was dropped. Everything after it is dropped too, or there would be a gap.
	full        bool
	subscribers map[*Subscription]struct{}
}

func newEpisode(name fence.Fence) *episode {
	return &episode{name: name, subscribers: map[*Subscription]struct{}{}}
}

func (e *episode) isOpened() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.opened
}

// reopen answers a second Open. It does not know an episode that is only awaited.
func (e *episode) reopen(incarnation string) (last int64, known bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.opened:
		return 0, false, nil
	case e.closed || e.incarnation != incarnation:
		return 0, true, ErrExists
	default:
		return e.received, true, nil
	}
}

func (e *episode) open(incarnation string, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.opened, e.incarnation, e.touched = true, incarnation, now
}

func (e *episode) close(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	e.opened, e.closed, e.closedAt = true, true, now
	e.wake()
}

func (e *episode) closeIfAbandoned(now time.Time, after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened && !e.closed && e.writers == 0 && now.Sub(e.touched) >= after {
		e.closed, e.closedAt = true, now
		e.wake()
	}
}

func (e *episode) collectable(now time.Time, keep time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed && len(e.subscribers) == 0 && now.Sub(e.closedAt) >= keep
}

func (e *episode) closedSince() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closedAt, e.closed
}

func (e *episode) held() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.Bytes()
}

// wake tells the subscribers to look. The caller holds mu. It never waits: a subscriber that has not looked yet since
// the last time has its token already.
func (e *episode) wake() {
	for sub := range e.subscribers {
		select {
		case sub.wake <- struct{}{}:
		default:
		}
	}
}

// Writer adds frames to an open episode.
type Writer struct {
	store *Store
	e     *episode
}

// Writer returns the writer of an episode that the incarnation has opened. Release it when done.
func (s *Store) Writer(ep fence.Fence, incarnation string) (*Writer, error) {
	e := s.lookup(ep)
	if e == nil {
		return nil, ErrUnknown
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case !e.opened:
		return nil, ErrUnknown
	case e.closed || e.incarnation != incarnation:
		return nil, ErrExists
	}
	e.writers++
	return &Writer{store: s, e: e}, nil
}

// Release says that nothing more comes from this writer. The episode stays open.
func (w *Writer) Release() {
	now := w.store.opts.Now()
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	w.e.writers--
	w.e.touched = now
}

// Received is the number of the last frame that came in.
func (w *Writer) Received() int64 {
	w.e.mu.Lock()
	defer w.e.mu.Unlock()
	return w.e.received
}

// Append adds one encoded frame, without its newline. A frame that came before is ignored, because a generator sends
// again what it is not sure of; one that leaves a gap is refused.
// A frame that finds no room is dropped without an error.
func (w *Writer) Append(seq int64, line []byte) error {
	n := len(line) + 1
	room := w.store.reserve(n)
	kept, dropped, err := w.e.append(seq, line, room, w.store.opts.EpisodeBytes)
	if room && !kept {
		w.store.size.Add(-int64(n))
	}
	if dropped {
		w.store.dropped.Add(1)
	}
	return err
}

func (e *episode) append(seq int64, line []byte, room bool, limit int) (kept, dropped bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return false, false, ErrClosed
	case seq <= e.received:
		return false, false, nil
	case seq != e.received+1:
		return false, false, ErrGap
	}
	e.received = seq
	if e.full || !room || e.log.Bytes()+len(line)+1 > limit {
		e.full = true
		return false, true, nil
	}
	e.log.Append(line)
	e.wake()
	return true, false, nil
}
