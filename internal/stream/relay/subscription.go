// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"io"
	"time"

	"parley.dev/parley/internal/chat/fence"
)

// Subscription reads one episode from a position. It belongs to one goroutine.
type Subscription struct {
	store *Store
	e     *episode
	after int64
	wake  chan struct{}
}

// Subscribe reads the frames of an episode behind number after. It waits for an episode that does not exist yet. Close it
// when done.
func (s *Store) Subscribe(ep fence.Fence, after int64) *Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &Subscription{store: s, e: s.ensure(ep), after: max(after, 0), wake: make(chan struct{}, 1)}
	sub.e.subscribers[sub] = struct{}{}
	return sub
}

// Next waits for frames and returns them, each a line of JSON, at most about 64 KiB. The bytes are shared and must not be
// changed. It returns nothing when beat comes first, and io.EOF after the last frame of a closed episode.
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
