// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley.dev/parley/internal/chat/fence"
)

const (
	// DefaultEpisodeBytes is how much encoded JSON one episode keeps; frames beyond it are dropped and counted.
	DefaultEpisodeBytes = 1 << 20
	// DefaultTotalBytes is how much all episodes keep together; the oldest closed one goes first.
	DefaultTotalBytes = 256 << 20
	// DefaultKeep is how long a closed episode stays for late subscribers.
	DefaultKeep = 15 * time.Second
	// DefaultAbandon is how long an open episode that nobody writes to stays. It is well over the ten minutes of silence
	// after which an attempt is given up.
	DefaultAbandon = 30 * time.Minute
)

var (
	// ErrExists means that another incarnation of the generator has opened the episode, or that it is over.
	ErrExists = errors.New("the episode was opened by another incarnation or is closed")
	// ErrUnknown means that nobody has opened the episode.
	ErrUnknown = errors.New("the episode is not open")
	// ErrGap means that a frame does not follow on the one before it.
	ErrGap = errors.New("the frame does not follow on the last one")
	// ErrClosed means that the episode takes no more frames.
	ErrClosed = errors.New("the episode is closed")
)

// Options bounds a Store. The zero value of each field means its default.
type Options struct {
	// EpisodeBytes per episode, default DefaultEpisodeBytes.
	EpisodeBytes int
	// TotalBytes of all episodes, default DefaultTotalBytes.
	TotalBytes int64
	// Keep closed episodes for so long, default DefaultKeep.
	Keep time.Duration
	// Abandon open episodes without a writer after so long, default DefaultAbandon.
	Abandon time.Duration
	// MarkerDir is where the openers of the episodes are remembered; empty means not at all.
	MarkerDir string
	// Now returns the current time.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.EpisodeBytes == 0 {
		o.EpisodeBytes = DefaultEpisodeBytes
	}
	if o.TotalBytes == 0 {
		o.TotalBytes = DefaultTotalBytes
	}
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Abandon == 0 {
		o.Abandon = DefaultAbandon
	}
	return o
}

// Store holds the episodes. It is safe for concurrent use.
//
// Locks are taken in the order lifecycle, mu, episode.mu. No frame waits for lifecycle, which covers the file system.
type Store struct {
	opts    Options
	markers markers
	size    atomic.Int64
	dropped atomic.Int64

	lifecycle sync.Mutex

	mu       sync.Mutex
	episodes map[fence.Fence]*episode
}

// NewStore makes a store, and reads the markers that an earlier life of this relay left behind.
func NewStore(opts Options) (*Store, error) {
	s := &Store{opts: opts.withDefaults(), episodes: map[fence.Fence]*episode{}}
	s.markers = markers{dir: s.opts.MarkerDir}
	found, err := s.markers.load()
	if err != nil {
		return nil, err
	}
	now := s.opts.Now()
	for ep, incarnation := range found {
		e := newEpisode(ep)
		e.open(incarnation, now)
		if incarnation == "" { // it was closed before anybody had opened it
			e.close(now)
		}
		s.episodes[ep] = e
	}
	return s, nil
}

// Open opens an episode for an incarnation of the generator. It tells the last number that it has of the episode, which
// is 0 for a new one, and whether the episode is new. It fails with ErrExists if it is somebody else's, or over.
func (s *Store) Open(ep fence.Fence, incarnation string) (last int64, created bool, err error) {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	if e := s.lookup(ep); e != nil {
		if last, known, err := e.reopen(incarnation); known {
			return last, false, err
		}
	}
	if err := s.markers.create(ep, incarnation); err != nil {
		return 0, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ensure(ep).open(incarnation, s.opts.Now())
	return 0, true, nil
}

// Close ends an episode. A missing one is created closed, so that whoever comes to open it later is refused. Closing
// twice is the same as closing once.
func (s *Store) Close(ep fence.Fence) error {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	if e := s.lookup(ep); e == nil || !e.isOpened() {
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
func (s *Store) Dropped() int64 { return s.dropped.Load() }

// Size is the number of bytes that the episodes hold.
func (s *Store) Size() int64 { return s.size.Load() }

// Collect removes the closed episodes that have been kept long enough and that nobody reads, and closes the open ones
// that nobody has written to for long.
func (s *Store) Collect() error {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	now := s.opts.Now()
	s.mu.Lock()
	var gone []*episode
	for _, e := range s.episodes {
		e.closeIfAbandoned(now, s.opts.Abandon)
		if e.collectable(now, s.opts.Keep) {
			gone = append(gone, e)
			s.forget(e)
		}
	}
	s.mu.Unlock()
	return s.removeMarkers(gone)
}

// reserve makes room for n bytes, if need be at the cost of the oldest closed episodes.
func (s *Store) reserve(n int) bool {
	if s.size.Add(int64(n)) <= s.opts.TotalBytes {
		return true
	}
	s.evict()
	if s.size.Load() <= s.opts.TotalBytes {
		return true
	}
	s.size.Add(-int64(n))
	return false
}

// evict forgets closed episodes, oldest first, until the rest fits. Who is reading one can read it to its end. Their
// markers stay until the relay's next start: no lock that covers the file system is taken for a frame.
func (s *Store) evict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.size.Load() > s.opts.TotalBytes {
		var oldest *episode
		var at time.Time
		for _, e := range s.episodes {
			if t, closed := e.closedSince(); closed && (oldest == nil || t.Before(at)) {
				oldest, at = e, t
			}
		}
		if oldest == nil {
			return
		}
		s.forget(oldest)
	}
}

// forget takes an episode out of the store. The caller holds mu.
func (s *Store) forget(e *episode) {
	delete(s.episodes, e.name)
	s.size.Add(-int64(e.held()))
}

func (s *Store) removeMarkers(gone []*episode) error {
	var errs []error
	for _, e := range gone {
		if err := s.markers.remove(e.name); err != nil {
			errs = append(errs, fmt.Errorf("collecting episode %s: %w", e.name, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Store) lookup(ep fence.Fence) *episode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.episodes[ep]
}

// ensure finds or adds an episode. The caller holds mu.
func (s *Store) ensure(ep fence.Fence) *episode {
	e := s.episodes[ep]
	if e == nil {
		e = newEpisode(ep)
		s.episodes[ep] = e
	}
	return e
}
