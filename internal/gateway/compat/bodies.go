// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"parley.dev/parley/internal/gateway/refusal"
)

// piece is how much of a body is read at a time, in bytes: what somebody holds who sends nothing.
const piece = 64 << 10

// room bounds the bytes of bodies that are held at the same time, in all and for each caller. What is promised and
// does not come takes none. It is safe for concurrent use.
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
			Message: "the gateway reads as much as it may have, try again"}
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

// body reads the body, which must come in time and find room.
func (c *call) body(held *share) ([]byte, error) {
	_ = c.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // or the server's own holds
	c.read = true
	from := http.MaxBytesReader(c.w, c.r.Body, maxBody)
	var body bytes.Buffer
	for {
		if refused := held.grow(piece); refused != nil {
			c.w.Header().Set("Connection", "close") // Nobody reads the rest.
			return nil, refused
		}
		_, err := io.CopyN(&body, from, piece)
		if errors.Is(err, io.EOF) {
			c.patient()
			return body.Bytes(), nil
		}
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &refusal.Error{Status: http.StatusRequestEntityTooLarge, Reason: refusal.TooLarge, Cause: large,
				Message: "the body has more than 16 MiB"}
		}
		if err != nil {
			return nil, &refusal.Error{Status: http.StatusRequestTimeout, Reason: refusal.BadRequest,
				Message: "the body has not come within 20 seconds"}
		}
	}
}
