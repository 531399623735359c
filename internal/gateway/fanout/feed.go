// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"strconv"
	"sync"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/stream/framelog"
)

const (
	// alwaysKept is how many bytes a log may keep without memory of the hub: about a hundred parts.
	alwaysKept = 16 << 10
	// mostKept is how many bytes a log keeps at most: twice what a relay keeps of an episode, as events have more fields.
	mostKept = 2 << 20
)

// feed is one subscription to an episode, with its readers. It runs from its first reader to its last.
type feed struct {
	episode Episode
	memory  limit.Limiter
	stop    context.CancelFunc
	done    chan struct{}

	mu       sync.Mutex
	log      framelog.Log
	reserved int64 // bytes of memory beyond alwaysKept
	readers  map[*Reader]struct{}
	taken    sync.Cond // readers took parts, joined or left
}

func newFeed(ep Episode, after int64, memory limit.Limiter, stop context.CancelFunc) *feed {
	f := &feed{episode: ep, memory: memory, log: framelog.After(after), readers: map[*Reader]struct{}{}, stop: stop,
		done: make(chan struct{})}
	f.taken.L = &f.mu
	return f
}

// join adds a reader, unless the log has dropped what it needs.
func (f *feed) join(r *Reader) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.after < f.log.Dropped() {
		return false
	}
	f.readers[r] = struct{}{}
	r.feed = f
	r.wake()
	f.taken.Signal() // It may be the foremost reader.
	return true
}

// leave removes a reader. It reports whether it was the last one, which ends the feed.
func (f *feed) leave(r *Reader) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
	f.taken.Signal()
	if len(f.readers) > 0 {
		return false
	}
	f.stop()
	f.shrink(0)
	return true
}

// wait waits for the end of the feed; nil has none.
func (f *feed) wait() {
	if f != nil {
		<-f.done
	}
}

// take returns what has come for a reader. It reports whether the log has dropped that.
func (f *feed) take(r *Reader) (batch Batch, dropped bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.after < f.log.Dropped() {
		return Batch{}, true
	}
	batch.first = r.after + 1
	batch.lines, r.after = f.log.Behind(r.after)
	if len(batch.lines) > 0 {
		f.taken.Signal()
	}
	if r.after < f.log.Last() {
		r.wake()
	}
	return batch, false
}

// run reads the episode until it is over or ctx is done. It retries while the relay cannot be reached.
func (f *feed) run(ctx context.Context, source Source) {
	defer close(f.done)
	for pauses := retry.Stream.Start(); ; {
		more, whole := f.read(ctx, source)
		if more {
			pauses.Reset()
		}
		if whole || pauses.Wait(ctx, nil) != nil {
			return
		}
	}
}

// read reads one subscription. It reports whether parts came, and whether the episode is over.
func (f *feed) read(ctx context.Context, source Source) (more, whole bool) {
	var line []byte
	ep := f.episode
	for frame, err := range source.Subscribe(ctx, ep.Namespace, ep.Pod, ep.Fence, f.last()) {
		if err != nil {
			return more, false
		}
		line = appendPart(line[:0], ep.Fence, &frame)
		more = f.add(frame.Seq, line) || more
	}
	return more, true
}

// appendPart appends the data of a part's event as encoding/json writes a stream.MessagePart, which begins with the
// attempt and continues as the frame does.
func appendPart(b []byte, attempt fence.Fence, frame *parts.Frame) []byte {
	b = strconv.AppendInt(append(b, `{"historyVersion":`...), attempt.HistoryVersion, 10)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(attempt.Attempt), 10)
	at := len(b)
	b = frame.AppendJSON(b)
	b[at] = ',' // in place of the brace that begins the frame
	return b
}

func (f *feed) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Last()
}

// add appends a part to the log and wakes the readers. It waits until there is room for the part, and reports whether
// the part was added: it must follow the last one, and the feed must have readers.
func (f *feed) add(seq int64, line []byte) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq != f.log.Last()+1 {
		return false
	}
	for len(f.readers) > 0 && !f.makeRoom(len(line)+1) {
		f.taken.Wait()
	}
	if len(f.readers) == 0 {
		return false
	}
	f.log.Append(line)
	for r := range f.readers {
		r.wake()
	}
	return true
}

// makeRoom reports whether the log may grow by so many bytes. If need be, the log drops its oldest parts, of those that
// the foremost reader has. There is always room for one part. The caller holds mu.
func (f *feed) makeRoom(bytes int) bool {
	size := f.log.Bytes() + bytes
	if size <= alwaysKept || f.reserve(size) {
		return true
	}
	f.log.Drop(max(0, min(alwaysKept/2, alwaysKept-bytes)), f.foremost())
	f.shrink(f.log.Bytes())
	return f.log.Bytes() == 0 || f.log.Bytes()+bytes <= alwaysKept
}

// foremost is the number of the last part that some reader has taken. The caller holds mu.
func (f *feed) foremost() (seq int64) {
	for r := range f.readers {
		seq = max(seq, min(r.after, f.log.Last()))
	}
	return seq
}

// reserve takes memory for a log of so many bytes, and reports whether there was enough. The caller holds mu.
func (f *feed) reserve(size int) bool {
	more := max(0, int64(size-alwaysKept)-f.reserved)
	if size > mostKept || !f.memory.TryAcquire(more) {
		return false
	}
	f.reserved += more
	return true
}

// shrink releases the memory that a log of so many bytes does not need. The caller holds mu.
func (f *feed) shrink(size int) {
	if less := f.reserved - max(0, int64(size-alwaysKept)); less > 0 {
		f.memory.Release(less)
		f.reserved -= less
	}
}
