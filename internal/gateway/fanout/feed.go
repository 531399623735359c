// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"sync"

	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/stream/framelog"
)

// feed is one subscription to an episode, and those who read it. It runs from its first reader to its last.
type feed struct {
	episode Episode
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	log     framelog.Log
	share   share
	readers map[*Reader]struct{}
	// shared is true once the feed has had several readers at the same time. More may come: it keeps what it can.
	shared bool
	// replaced is true once new readers join another feed, which its own are to join, too.
	replaced bool
	// waits is true while the newest part finds no room; then carries a value when a reader has taken parts.
	waits bool
	taken chan struct{}
}

func newFeed(ep Episode, after int64, memory limit.Limiter, stop context.CancelFunc) *feed {
	return &feed{episode: ep, log: framelog.After(after), share: share{memory: memory}, readers: map[*Reader]struct{}{},
		stop: stop, done: make(chan struct{}), taken: make(chan struct{}, 1)}
}

// join takes a reader in, unless the log has forgotten what it wants.
func (f *feed) join(r *Reader) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.after < f.log.Dropped() {
		return false
	}
	f.readers[r] = struct{}{}
	f.shared = f.shared || len(f.readers) > 1
	r.feed = f
	r.wake()
	f.tellTaken() // It may be ahead of all others, so that there is room.
	return true
}

// leave lets a reader go. It reports whether it was the last one, with whom the feed ends.
func (f *feed) leave(r *Reader) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
	if len(f.readers) > 0 {
		f.tellTaken() // The foremost may have been the one who left.
		return false
	}
	f.stop()
	f.share.shrink(0)
	return true
}

// wait waits for the feed's end; nil has none.
func (f *feed) wait() {
	if f != nil {
		<-f.done
	}
}

// replace says that new readers join another feed. It returns the number behind which that begins: it has the whole
// episode for whoever comes next, unless there is no room for that.
func (f *feed) replace(after int64) (behind int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replaced = true
	if f.shared {
		return after
	}
	return 0
}

// keeps reports whether the log has not forgotten what follows on a part.
func (f *feed) keeps(seq int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Dropped() <= seq
}

// has reports whether the feed has come as far as a part.
func (f *feed) has(seq int64) bool { return seq <= f.last() }

// take hands a reader what has come. The reader is to move if that was forgotten, or if there is another feed.
func (f *feed) take(r *Reader) (batch Batch, move bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.after < f.log.Dropped() {
		return Batch{}, true
	}
	batch.first = r.after + 1
	batch.lines, r.after = f.log.Behind(r.after)
	if len(batch.lines) > 0 {
		f.tellTaken()
	}
	if r.after < f.log.Last() {
		r.wake()
	}
	return batch, f.replaced
}

// wake tells a reader to look. It never waits: who has not looked since the last time will find all.
func (r *Reader) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// tellTaken lets the newest part be tried again. The caller holds mu.
func (f *feed) tellTaken() {
	if f.waits {
		f.waits = false
		f.taken <- struct{}{} // It has room: nobody else sends until the next part waits.
	}
}

// run reads the episode until it is over or ctx is done. The relay may be unreachable: it keeps
// trying.
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
		for {
			added, full := f.add(frame.Seq, line)
			more = more || added
			if !full {
				break
			}
			select {
			case <-f.taken:
			case <-ctx.Done():
				return more, false
			}
		}
	}
	return more, true
}

func (f *feed) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Last()
}

// add puts a part into the log, if it follows on the last one and somebody reads, and wakes the readers. It is full if
// there is no room for the part until a reader has taken some.
func (f *feed) add(seq int64, line []byte) (added, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq != f.log.Last()+1 || len(f.readers) == 0 {
		return false, false
	}
	if !f.makeRoom(len(line) + 1) {
		f.waits = true
		return false, true
	}
	f.log.Append(line)
	for r := range f.readers {
		r.wake()
	}
	return true, false
}

// makeRoom reports whether the log may grow by so many bytes, if need be after it has forgotten its oldest parts: those
// that the foremost reader has. One part there is always room for. The caller holds mu.
func (f *feed) makeRoom(bytes int) bool {
	always := singleKept
	if f.shared {
		always = alwaysKept
	}
	if size := f.log.Bytes() + bytes; size <= always || f.shared && f.share.fits(size) {
		return true
	}
	f.log.Drop(max(0, min(always/2, always-bytes)), f.foremost())
	f.share.shrink(f.log.Bytes())
	return f.log.Bytes() == 0 || f.log.Bytes()+bytes <= always
}

// foremost is the number of the last part that some reader has taken. The caller holds mu.
func (f *feed) foremost() (seq int64) {
	for r := range f.readers {
		seq = max(seq, min(r.after, f.log.Last()))
	}
	return seq
}
