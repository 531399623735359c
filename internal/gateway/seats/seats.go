// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seats bounds how much of something is under way at the same time, in all and for each caller, so that no
// caller can take what all have.
package seats

import "sync"

// Full is why there is no seat.
type Full int

const (
	// No means that there is one.
	No Full = iota
	// ForCaller means that the caller has as many as one may have.
	ForCaller
	// ForAll means that all are taken.
	ForAll
)

// Seats counts who has one. It is safe for concurrent use.
type Seats struct {
	most, perCaller int

	mu     sync.Mutex
	taken  int
	caller map[string]int
}

// New makes so many seats, of which a caller has at most perCaller.
func New(most, perCaller int) *Seats {
	return &Seats{most: most, perCaller: perCaller, caller: map[string]int{}}
}

// Take gives a caller a seat until leave is called, which is nil if there is none.
func (s *Seats) Take(caller string) (leave func(), full Full) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.caller[caller] >= s.perCaller:
		return nil, ForCaller
	case s.taken >= s.most:
		return nil, ForAll
	}
	s.taken++
	s.caller[caller]++
	return func() { s.leave(caller) }, No
}

func (s *Seats) leave(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.caller[caller]--; s.caller[caller] == 0 {
		delete(s.caller, caller)
	}
}
