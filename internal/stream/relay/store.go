// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay keeps the parts of running attempts in memory, and sends them to all that follow a chat.
//
// An episode is the parts of one attempt, numbered from 1 without gaps. One incarnation of one generator opens it and
// no other, also after a restart of the relay. Every subscriber gets the frames of an episode in order, each once,
// whether it subscribes before, during or after the episode. A slow reader delays no writer. A frame is kept once, in
// the encoding of the generator.
//
// Losing the relay costs only the preview: a finished step is a ChatMessage.
package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/stream/framelog"
)

const (
	// DefaultEpisodeBytes is how much encoded JSON one episode keeps; frames beyond it are dropped and counted.
	DefaultEpisodeBytes = 1 << 20
	// DefaultTotalBytes is how much all episodes keep together; the oldest closed one is evicted first. Their memory is up
	// to two fifths more, and all has to fit into the limit of the relay's container.
	DefaultTotalBytes = 192 << 20
	// keepClosed is how long a closed episode is kept for late subscribers.
	keepClosed = 15 * time.Second
	// abandonedAfter is how long an open episode without a writer is kept. It is longer than the ten minutes of silence
	// after which an attempt is cancelled.
	abandonedAfter = 30 * time.Minute
)

var (
	// ErrExists means that another incarnation of the generator has opened the episode, or that it is over.
	ErrExists = errors.New("the episode was opened by another incarnation or is closed")
	// ErrUnknown means that the episode was not opened.
	ErrUnknown = errors.New("the episode is not open")
	// ErrGap means that a frame does not follow the one before it.
	ErrGap = errors.New("the frame does not follow on the last one")
	// ErrClosed means that the episode accepts no more frames.
	ErrClosed = errors.New("the episode is closed")
)

// Audience is the audience of a gateway's token for the relay of one pod: parley-relay/NAMESPACE/POD-UID. A stolen
// token can be used nowhere else.
func Audience(namespace, podUID string) string { return "parley-relay/" + namespace + "/" + podUID }

// Options of a Store. The zero value of each limit is its default.
type Options struct {
	// EpisodeBytes per episode, default DefaultEpisodeBytes.
	EpisodeBytes int
	// TotalBytes of all episodes, default DefaultTotalBytes.
	TotalBytes int64
	// MarkerDir is where the openers of the episodes are recorded; empty: nowhere.
	MarkerDir string
	// Now returns the current time.
	Now func() time.Time
}

// Store holds the episodes. It is safe for concurrent use.
//
// Locks are taken in the order lifecycle, mu. Frames do not wait for lifecycle, which covers the file system.
type Store struct {
	opts    Options
	markers markers

	lifecycle sync.Mutex

	mu       sync.Mutex
	episodes map[fence.Fence]*episode
	size     int64 // bytes of the logs of all episodes
	dropped  int64
}

// episode is the parts of one attempt. It is awaited by subscribers but not opened, open, or closed. The store's mu
// guards it.
type episode struct {
	name        fence.Fence
	opened      bool
	incarnation string
	closed      bool
	closedAt    time.Time
	touched     time.Time
	writers     int
	// log has every kept frame as a line of JSON.
	log framelog.Log
	// received is the number of the last frame that came in, kept or dropped.
	received int64
	// full is whether a frame was dropped. Everything after it is dropped as well, or there would be a gap.
	full        bool
	subscribers map[*Subscription]struct{}
}

func (e *episode) open(incarnation string, now time.Time) {
	e.opened, e.incarnation, e.touched = true, incarnation, now
}

func (e *episode) close(now time.Time) {
	if !e.closed {
		e.opened, e.closed, e.closedAt = true, true, now
		e.wake()
	}
}

// wake makes the subscribers look at the log. It never waits: one that has not looked since the last time finds all.
func (e *episode) wake() {
	for sub := range e.subscribers {
		select {
		case sub.wake <- struct{}{}:
		default:
		}
	}
}

// NewStore makes a store, and reads the markers of an earlier life of this relay.
func NewStore(opts Options) (*Store, error) {
	opts.EpisodeBytes = cmp.Or(opts.EpisodeBytes, DefaultEpisodeBytes)
	opts.TotalBytes = cmp.Or(opts.TotalBytes, DefaultTotalBytes)
	s := &Store{opts: opts, markers: markers{dir: opts.MarkerDir}, episodes: map[fence.Fence]*episode{}}
	found, err := s.markers.load()
	if err != nil {
		return nil, err
	}
	now := opts.Now()
	for ep, incarnation := range found {
		e := s.ensure(ep)
		e.open(incarnation, now)
		if incarnation == "" { // It was closed before it was opened.
			e.close(now)
		}
	}
	return s, nil
}

// Open opens an episode for an incarnation of the generator. It returns the number of the last frame of the episode,
// which is 0 for a new one, and whether the episode is new. It fails with ErrExists if another incarnation has opened
// it, or if it is over.
func (s *Store) Open(ep fence.Fence, incarnation string) (last int64, created bool, err error) {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	if e, err := s.owned(ep, incarnation); !errors.Is(err, ErrUnknown) {
		if err != nil {
			return 0, false, err
		}
		return s.received(e), false, nil
	}
	if err := s.markers.create(ep, incarnation); err != nil {
		return 0, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensure(ep).open(incarnation, s.opts.Now())
	return 0, true, nil
}

// owned returns an open episode of the incarnation. It fails with ErrUnknown or ErrExists.
func (s *Store) owned(ep fence.Fence, incarnation string) (*episode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := s.episodes[ep]; {
	case e == nil || !e.opened:
		return nil, ErrUnknown
	case e.closed || e.incarnation != incarnation:
		return nil, ErrExists
	default:
		return e, nil
	}
}

// Close ends an episode. A missing one is created closed, so that it cannot be opened later. It may be called again.
func (s *Store) Close(ep fence.Fence) error {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	if _, err := s.owned(ep, ""); errors.Is(err, ErrUnknown) {
		if err := s.markers.create(ep, ""); err != nil && !errors.Is(err, ErrExists) {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensure(ep).close(s.opts.Now())
	return nil
}

// Dropped is the number of frames that found no room since the start.
func (s *Store) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

// Size is the number of bytes of all episodes.
func (s *Store) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Collect removes closed episodes that are old enough and have no readers, and closes open ones that were abandoned.
func (s *Store) Collect() error {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	var errs []error
	for _, ep := range s.forgetOld(s.opts.Now()) {
		if err := s.markers.remove(ep); err != nil {
			errs = append(errs, fmt.Errorf("collecting episode %s: %w", ep, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) forgetOld(now time.Time) (forgotten []fence.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ep, e := range s.episodes {
		if e.opened && e.writers == 0 && now.Sub(e.touched) >= abandonedAfter {
			e.close(now)
		}
		if e.closed && len(e.subscribers) == 0 && now.Sub(e.closedAt) >= keepClosed {
			forgotten = append(forgotten, ep)
			s.forget(e)
		}
	}
	return forgotten
}

// reserve makes room for n bytes, if need be by evicting closed episodes, the oldest first. Their readers can read them
// to the end. Their markers stay until the relay starts again, because frames do not wait for the file system. The
// caller holds mu.
func (s *Store) reserve(n int) bool {
	for s.size+int64(n) > s.opts.TotalBytes {
		var oldest *episode
		for _, e := range s.episodes {
			if e.closed && (oldest == nil || e.closedAt.Before(oldest.closedAt)) {
				oldest = e
			}
		}
		if oldest == nil {
			return false
		}
		s.forget(oldest)
	}
	return true
}

// forget removes an episode. The caller holds mu.
func (s *Store) forget(e *episode) {
	delete(s.episodes, e.name)
	s.size -= int64(e.log.Bytes())
}

// ensure finds or adds an episode. The caller holds mu, or is the only one.
func (s *Store) ensure(ep fence.Fence) *episode {
	e := s.episodes[ep]
	if e == nil {
		e = &episode{name: ep, subscribers: map[*Subscription]struct{}{}}
		s.episodes[ep] = e
	}
	return e
}

func (s *Store) received(e *episode) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.received
}

// Writer adds frames to an open episode.
type Writer struct {
	store *Store
	e     *episode
}

// Writer returns a writer of an episode that the incarnation has opened. Release it when done.
func (s *Store) Writer(ep fence.Fence, incarnation string) (*Writer, error) {
	e, err := s.owned(ep, incarnation)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e.writers++
	return &Writer{store: s, e: e}, nil
}

// Release ends the writer. The episode stays open.
func (w *Writer) Release() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.e.writers--
	w.e.touched = w.store.opts.Now()
}

// Received is the number of the last frame that came in.
func (w *Writer) Received() int64 { return w.store.received(w.e) }

// Append adds one encoded frame, without its newline. A frame that came before is ignored, because a generator sends
// again what it is not sure of. One that leaves a gap is refused. One that finds no room is dropped without an error.
func (w *Writer) Append(seq int64, line []byte) error {
	s, e := w.store, w.e
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.closed:
		return ErrClosed
	case seq <= e.received:
		return nil
	case seq != e.received+1:
		return ErrGap
	}
	e.received = seq
	n := len(line) + 1
	if e.full || e.log.Bytes()+n > s.opts.EpisodeBytes || !s.reserve(n) {
		e.full = true
		s.dropped++
		return nil
	}
	s.size += int64(n)
	e.log.Append(line)
	e.wake()
	return nil
}

// Subscription reads one episode from a position. It belongs to one goroutine.
type Subscription struct {
	store *Store
	e     *episode
	after int64
	wake  chan struct{}
}

// Subscribe reads the frames of an episode behind number after. It waits for an episode that does not exist yet. Close
// it when done.
func (s *Store) Subscribe(ep fence.Fence, after int64) *Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &Subscription{store: s, e: s.ensure(ep), after: max(after, 0), wake: make(chan struct{}, 1)}
	sub.e.subscribers[sub] = struct{}{}
	return sub
}

// Next waits for frames and returns them, each a line of JSON, at most about 64 KiB. The bytes are shared and must not
// be changed. It returns nothing when beat comes first, and io.EOF after the last frame of a closed episode.
func (s *Subscription) Next(ctx context.Context, beat <-chan time.Time) ([]byte, error) {
	for {
		batch, closed := s.take()
		switch {
		case batch != nil:
			return batch, nil
		case closed:
			return nil, io.EOF
		}
		select {
		case <-s.wake:
		case <-beat:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Subscription) take() (batch []byte, closed bool) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	batch, s.after = s.e.log.Behind(s.after)
	return batch, s.e.closed
}

// Dropped is the number of frames of the episode that found no room.
func (s *Subscription) Dropped() int64 {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	return s.e.received - s.e.log.Last()
}

// Close ends the subscription. An episode that was only awaited is removed with its last subscriber.
func (s *Subscription) Close() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	e := s.e
	delete(e.subscribers, s)
	if !e.opened && len(e.subscribers) == 0 && s.store.episodes[e.name] == e {
		delete(s.store.episodes, e.name)
	}
}
