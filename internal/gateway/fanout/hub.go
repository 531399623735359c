// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
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
	// Fence of the attempt whose parts they are.
	Fence fence.Fence
}

// Hub has the feeds of a process. It is safe for concurrent use.
//
// Locks are taken in the order Hub.mu, feed.mu.
type Hub struct {
	source Source
	memory limit.Limiter // of all logs

	mu sync.Mutex
	// feeds are those that new readers join: the newest of each episode. Older ones serve their readers on.
	feeds map[Episode]*feed
}

// New makes a hub. Its logs keep so many bytes together, beside the 16 KiB that each may keep in any case.
func New(source Source, bytes int64) *Hub {
	return &Hub{source: source, memory: limit.New(bytes), feeds: map[Episode]*feed{}}
}

// Join begins to read an episode behind number after, which may be one that nobody has opened yet. A relay that cannot
// be reached is tried again until the reader leaves. Close the reader when done. ctx gives values alone: a feed
// outlives the request that began it.
func (h *Hub) Join(ctx context.Context, ep Episode, after int64) *Reader {
	r := &Reader{hub: h, episode: ep, after: after, ready: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seat(ctx, r)
	return r
}

// seat gives a reader a feed that has what it wants. The caller holds mu.
func (h *Hub) seat(ctx context.Context, r *Reader) {
	f := h.feeds[r.episode]
	if f != nil && f.join(r) {
		return
	}
	var behind int64
	second := f != nil
	if second {
		behind = f.replace(r.after)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	f = newFeed(r.episode, behind, h.memory, stop)
	f.shared = second
	f.join(r)
	h.feeds[r.episode] = f
	go f.run(ctx, h.source)
}

// unseat takes a reader from a feed. It returns the feed if the reader was its last one, who then waits for its end.
// The caller holds mu.
func (h *Hub) unseat(r *Reader, f *feed) (ended *feed) {
	if !f.leave(r) {
		return nil
	}
	if h.feeds[f.episode] == f {
		delete(h.feeds, f.episode)
	}
	return f
}

// move lets a reader go on in the feed that new readers join, as soon as that has come as far, or in whichever has what
// its own has forgotten. It returns the feed that ends by that. The caller holds mu.
func (h *Hub) move(ctx context.Context, r *Reader) (ended *feed) {
	own, newest := r.feed, h.feeds[r.episode]
	if !own.keeps(r.after) {
		ended = h.unseat(r, own)
		h.seat(ctx, r)
		return ended
	}
	if newest != nil && newest != own && newest.has(r.after) && newest.join(r) {
		return h.unseat(r, own)
	}
	return nil
}
