// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
)

// Reader reads an episode from its place on. It belongs to one goroutine.
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

// Take returns the parts that have come, at most about 64 KiB of them: Ready tells of more. It does not wait. There may
// be none.
func (r *Reader) Take(ctx context.Context) Batch {
	batch, move := r.feed.take(r)
	if move {
		r.move(ctx)
	}
	return batch
}

// move continues in the feed that others read, or in one that has what the reader's own has forgotten.
func (r *Reader) move(ctx context.Context) {
	r.hub.mu.Lock()
	ended := r.hub.move(ctx, r)
	r.hub.mu.Unlock()
	ended.wait()
}

// Close ends the reading. When the last reader of a feed has left, nothing of that runs any more.
func (r *Reader) Close() {
	r.hub.mu.Lock()
	ended := r.hub.unseat(r, r.feed)
	r.hub.mu.Unlock()
	ended.wait()
}

// Batch is parts that follow on each other.
type Batch struct {
	first int64
	lines []byte
}

// All yields the number of each part, and the data of its event: a stream.MessagePart, which is shared between readers
// and must not be changed.
func (b Batch) All() iter.Seq2[int64, json.RawMessage] {
	return func(yield func(int64, json.RawMessage) bool) {
		seq := b.first
		for rest := b.lines; len(rest) > 0; seq++ {
			end := bytes.IndexByte(rest, '\n')
			if !yield(seq, json.RawMessage(rest[:end:end])) {
				return
			}
			rest = rest[end+1:]
		}
	}
}
