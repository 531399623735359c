// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package framelog keeps the frames of an episode as lines, for readers at different positions. The generator, the
// relay and the gateway have one for each episode. It depends on the standard library only, because the relay links it.
package framelog

import "sort"

// maxBatch is about how many bytes a reader gets at once: large enough to catch up fast, small enough for a slow
// connection within the write deadline.
const maxBatch = 64 << 10

// Log keeps numbered lines, from 1 without gaps. Append and Drop do not change the bytes that Behind returned. The zero
// value is empty. It is not safe for concurrent use.
type Log struct {
	// dropped is the number of the last line that was dropped.
	dropped int64
	lines   []byte
	// ends holds the offset in lines behind each one.
	ends []int
}

// After is an empty log whose first line gets the number behind seq.
func After(seq int64) Log { return Log{dropped: seq} }

// Append adds a line, without its newline.
func (l *Log) Append(line []byte) {
	l.lines = append(append(l.lines, line...), '\n')
	l.ends = append(l.ends, len(l.lines))
}

// Last is the number of the newest line; 0 if there was none.
func (l *Log) Last() int64 { return l.dropped + int64(len(l.ends)) }

// Dropped is the number of the newest line that was dropped; 0 if none was.
func (l *Log) Dropped() int64 { return l.dropped }

// Bytes are how many the kept lines have, newlines included.
func (l *Log) Bytes() int { return len(l.lines) }

// Behind returns the lines behind number after, each with its newline, at most about 64 KiB of them, and the number of
// the last one. There are none, and last is after, if none has come. The bytes are shared and must not be changed. What
// was dropped must not be asked for.
func (l *Log) Behind(after int64) (lines []byte, last int64) {
	from := int(after - l.dropped)
	if from >= len(l.ends) {
		return nil, after
	}
	start := l.offset(from)
	upTo := sort.SearchInts(l.ends, start+maxBatch)
	upTo = min(max(upTo, from+1), len(l.ends))
	end := l.ends[upTo-1]
	return l.lines[start:end:end], l.dropped + int64(upTo)
}

// Drop drops the oldest lines until at most keep bytes are left, but none behind number upTo.
func (l *Log) Drop(keep int, upTo int64) {
	n := sort.SearchInts(l.ends, len(l.lines)-keep) + 1
	if len(l.lines) <= keep {
		n = 0
	}
	n = min(n, int(upTo-l.dropped))
	if n <= 0 {
		return
	}
	start := l.offset(n)
	lines := append([]byte(nil), l.lines[start:]...)
	ends := make([]int, 0, len(l.ends)-n)
	for _, end := range l.ends[n:] {
		ends = append(ends, end-start)
	}
	l.dropped, l.lines, l.ends = l.dropped+int64(n), lines, ends
}

// offset is where the line behind the first n kept ones begins.
func (l *Log) offset(n int) int {
	if n == 0 {
		return 0
	}
	return l.ends[n-1]
}
