// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fanout reads the parts of an episode once for all clients of this process that follow the chat.
//
// The first reader of an episode starts a feed: one subscription to the relay of the episode's pod, and a log of the
// parts as the JSON that clients get, so that each part is decoded and encoded once. A reader is a position in that
// log. It gets each part once and in order. The last reader that leaves ends the feed.
//
// A log keeps all of the episode while there is memory. A log without memory drops the parts that its foremost reader
// has. A reader that needs a dropped part starts another feed, because the relay has the whole episode.
package fanout

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"sync"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/netguard/limit"
)

// Source subscribes to relays.
type Source interface {
	// Subscribe yields the frames of an episode behind number after from the relay of a pod. It ends without an error
	// when the episode is over.
	Subscribe(ctx context.Context, namespace, pod string, ep fence.Fence, after int64) iter.Seq2[parts.Frame, error]
}

// Episode is what is read, and where.
type Episode struct {
	// Namespace and Pod name the generation pod whose relay has the episode.
	Namespace, Pod string
	// Fence of the attempt.
	Fence fence.Fence
}

// Hub has the feeds of a process. It is safe for concurrent use.
//
// Locks are taken in the order Hub.mu, feed.mu.
type Hub struct {
	source Source
	memory limit.Limiter // of all logs

	mu sync.Mutex
	// feeds are those that new readers join: the newest of each episode.
	feeds map[Episode]*feed
}

// New makes a hub. Its logs keep so many bytes together, in addition to the 16 KiB that each may always keep.
func New(source Source, bytes int64) *Hub {
	return &Hub{source: source, memory: limit.New(bytes), feeds: map[Episode]*feed{}}
}

// Join starts to read an episode behind number after. The episode need not exist yet, and a relay that cannot be
// reached is tried again until the reader leaves. Close the reader when done. The feed uses the values of ctx only: it
// may outlive the request that started it.
func (h *Hub) Join(ctx context.Context, ep Episode, after int64) *Reader {
	r := &Reader{hub: h, episode: ep, after: after, ready: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.join(ctx, r)
	return r
}

// join adds a reader to a feed that has what it needs. The caller holds mu.
func (h *Hub) join(ctx context.Context, r *Reader) {
	known := h.feeds[r.episode]
	if known != nil && known.join(r) {
		return
	}
	var after int64 // The first feed has the whole episode for the next reader.
	if known != nil {
		after = r.after
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := newFeed(r.episode, after, h.memory, stop)
	f.join(r)
	h.feeds[r.episode] = f
	go f.run(ctx, h.source)
}

// leave removes a reader from its feed. It returns the feed if that ends now, and nil otherwise. The caller holds mu.
func (h *Hub) leave(r *Reader) (ended *feed) {
	f := r.feed
	if !f.leave(r) {
		return nil
	}
	if h.feeds[f.episode] == f {
		delete(h.feeds, f.episode)
	}
	return f
}

// Reader reads an episode from its position. It belongs to one goroutine.
type Reader struct {
	hub     *Hub
	episode Episode
	feed    *feed
	// after is the number of the last part that it took. It changes under the feed's lock.
	after int64
	ready chan struct{}
}

// Ready carries a value when Take may return something.
func (r *Reader) Ready() <-chan struct{} { return r.ready }

// Take returns the parts that have come, at most about 64 KiB of them: Ready reports if there are more. It does not
// wait. There may be none.
func (r *Reader) Take(ctx context.Context) Batch {
	batch, dropped := r.feed.take(r)
	if dropped {
		r.hub.mu.Lock()
		ended := r.hub.leave(r)
		r.hub.join(ctx, r)
		r.hub.mu.Unlock()
		ended.wait()
	}
	return batch
}

// Close ends the reading. When the last reader of a feed has left, none of its goroutines run.
func (r *Reader) Close() {
	r.hub.mu.Lock()
	ended := r.hub.leave(r)
	r.hub.mu.Unlock()
	ended.wait()
}

// wake makes the reader look at the log. It never waits: a reader that has not looked since the last time finds all.
func (r *Reader) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Batch is a sequence of parts without gaps.
type Batch struct {
	first int64
	lines []byte
}

// All yields the number of each part, and the data of its event: a stream.MessagePart, which readers share and must not
// change.
func (b Batch) All() iter.Seq2[int64, json.RawMessage] {
	return func(yield func(int64, json.RawMessage) bool) {
		seq := b.first
		for line := range bytes.Lines(b.lines) {
			if !yield(seq, json.RawMessage(line[:len(line)-1:len(line)-1])) {
				return
			}
			seq++
		}
	}
}
