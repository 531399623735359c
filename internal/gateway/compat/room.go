// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"
	"sync"
	"time"

	"parley.dev/parley/internal/gateway/refusal"
)

// room bounds the bytes that are held at the same time, in all and for each caller. It is safe for concurrent use.
type room struct {
	most, perCaller int64

	mu     sync.Mutex
	taken  int64
	caller map[string]int64
}

func newRoom(most, perCaller int64) *room {
	return &room{most: most, perCaller: perCaller, caller: map[string]int64{}}
}

// share is what one request holds.
type share struct {
	room   *room
	caller string
	bytes  int64
}

// grow takes so many bytes more. It is nil as long as there are so many.
func (s *share) grow(bytes int64) *refusal.Error {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	switch {
	case s.room.caller[s.caller]+bytes > s.room.perCaller:
		return &refusal.Error{Status: http.StatusTooManyRequests, Reason: refusal.TooManyRequests, RetryAfter: time.Second,
			Message: s.caller + " has as much under way as one caller may have, try again"}
	case s.room.taken+bytes > s.room.most:
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.GatewayFull, RetryAfter: time.Second,
			Message: "the gateway has as much under way as it may have, try again"}
	}
	s.room.taken += bytes
	s.room.caller[s.caller] += bytes
	s.bytes += bytes
	return nil
}

// leave gives all of it back.
func (s *share) leave() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.room.taken -= s.bytes
	if s.room.caller[s.caller] -= s.bytes; s.room.caller[s.caller] <= 0 {
		delete(s.room.caller, s.caller)
	}
	s.bytes = 0
}
