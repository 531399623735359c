// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// segmentBytes is the size of a segment, but for the last one and those before a gap.
	segmentBytes = 1 << 20
	// segmentPrefix is followed by the offset of the segment.
	segmentPrefix = "output."
	// refusalPause is how long nothing is written after the disk has refused something. After maxRefusals nothing is
	// written again: each one may leave a small segment.
	refusalPause = 5 * time.Second
	maxRefusals  = 32
)

// output is what a command has written, in files that are named by their offsets: the first ones up to
// protocol.HeadBytes, and the last ones from protocol.TailBytes before the end on. One goroutine takes; any may read.
type output struct {
	dir string
	now func() time.Time

	mu       sync.Mutex
	segments []segment // by their offsets
	written  int64     // by the command
	stored   int64     // in the segments
	unstored int64     // refused by the disk
	refusal  error     // why

	// Only the goroutine that takes uses these.
	tail     *os.File // the last segment; nil: it is not open
	refusals int
	resume   time.Time
}

type segment struct{ from, size int64 }

func (s segment) end() int64 { return s.from + s.size }

// room is how much fits into the segment: up to the next multiple of its size, so that the head ends where it should.
func (s segment) room() int64 { return (s.from/segmentBytes+1)*segmentBytes - s.end() }

func newOutput(dir string, now func() time.Time) *output {
	return &output{dir: dir, now: now}
}

// openOutput finds what is there of an output of which at least so much had been written.
func openOutput(dir string, now func() time.Time, written int64) (*output, error) {
	o := newOutput(dir, now)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking for output: %w", err)
	}
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), segmentPrefix)
		from, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || from < 0 || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue
		}
		o.segments = append(o.segments, segment{from: from, size: min(info.Size(), segmentBytes)})
	}
	slices.SortFunc(o.segments, func(a, b segment) int { return int(min(max(a.from-b.from, -1), 1)) })
	for _, s := range o.segments {
		o.stored += s.size
		o.written = max(o.written, s.end())
	}
	o.written = max(o.written, written)
	return o, nil
}

// size returns how much was written, how much of that is not kept, and why if the disk refused some.
func (o *output) size() (written, dropped int64, unstored string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unstored > 0 {
		unstored = fmt.Sprintf("%d bytes of output could not be stored: %v", o.unstored, o.refusal)
	}
	return o.written, o.written - o.stored, unstored
}

// kept is how much of it there is.
func (o *output) kept() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stored
}

// buffers are what output is copied through.
var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// take moves what the pipe holds to disk, and returns how much that was. The error is unix.EAGAIN if the pipe is empty;
// without an error, nothing means that no process can still write.
func (o *output) take(pipe int) (int64, error) {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	for {
		n, err := unix.Read(pipe, buffer[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		o.store(buffer[:n])
		return int64(n), nil
	}
}

// store writes to disk. What the disk refuses is lost: a full disk must neither stop the command nor fill the memory.
func (o *output) store(content []byte) {
	for len(content) > 0 {
		room, err := o.open()
		n := 0
		if err == nil {
			n, err = o.tail.Write(content[:min(int64(len(content)), room)])
			o.add(int64(n))
		}
		if content = content[n:]; err != nil {
			o.refused(int64(len(content)), err)
			return
		}
	}
}

// errRefused: the disk has refused something a moment ago.
var errRefused = errors.New("the storage refused output a moment ago")

// open opens the segment to write to, and returns how much fits.
func (o *output) open() (room int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tail != nil {
		if room := o.segments[len(o.segments)-1].room(); room > 0 {
			return room, nil
		}
	}
	o.closeTail()
	if o.refusals >= maxRefusals || o.refusals > 0 && o.now().Before(o.resume) {
		return 0, errRefused
	}
	next := segment{from: o.written}
	tail, err := os.OpenFile(o.name(next), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return 0, fmt.Errorf("opening a segment: %w", err)
	}
	o.tail, o.segments = tail, append(o.segments, next)
	return next.room(), nil
}

func (o *output) name(s segment) string {
	return filepath.Join(o.dir, segmentPrefix+strconv.FormatInt(s.from, 10))
}

// add notes that the last segment has grown, and removes segments that have aged out of the middle.
func (o *output) add(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.segments[len(o.segments)-1].size += n
	o.written += n
	o.stored += n
	o.segments = slices.DeleteFunc(o.segments, func(s segment) bool {
		if s.from < protocol.HeadBytes || s.end() > o.written-protocol.TailBytes {
			return false
		}
		_ = os.Remove(o.name(s)) // It may not exist.
		o.stored -= s.size
		return true
	})
}

// refused notes what the disk refused, and pauses writing.
func (o *output) refused(n int64, reason error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeTail()
	o.written += n
	o.unstored += n
	if errors.Is(reason, errRefused) {
		return
	}
	var errno unix.Errno
	if o.refusal = reason; errors.As(reason, &errno) {
		o.refusal = errno
	}
	o.refusals++
	o.resume = o.now().Add(refusalPause)
}

// close closes the file that is written to.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeTail()
}

func (o *output) closeTail() {
	if o.tail != nil {
		_ = o.tail.Close() // What was written is with the kernel.
		o.tail = nil
	}
}

// discard removes all that is kept, and returns how much that was.
func (o *output) discard() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.segments {
		_ = os.Remove(o.name(s)) // It may not exist.
	}
	freed := o.stored
	o.segments, o.stored = nil, 0
	return freed
}
