// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import "parley.dev/parley/internal/netguard/limit"

const (
	// alwaysKept is what each log may keep where there is no room: some hundred parts.
	alwaysKept = 16 << 10
	// singleKept is what the log of a single reader keeps, who takes each part at once.
	singleKept = 4 << 10
	// mostKept is what a log keeps at most: twice the parts of an episode that a relay keeps, as events have more of them.
	mostKept = 2 << 20
)

// share is what one log has of the bytes that all logs of a hub may keep together beyond alwaysKept.
type share struct {
	memory limit.Limiter
	bytes  int64
}

// fits reports whether a log may have so many bytes, and takes the memory for them.
func (s *share) fits(bytes int) bool {
	more := max(0, int64(bytes-alwaysKept)-s.bytes)
	if bytes > mostKept || more > 0 && !s.memory.TryAcquire(more) {
		return false
	}
	s.bytes += more
	return true
}

// shrink gives back what a log of so many bytes does not need.
func (s *share) shrink(bytes int) {
	if less := s.bytes - max(0, int64(bytes-alwaysKept)); less > 0 {
		s.memory.Release(less)
		s.bytes -= less
	}
}
