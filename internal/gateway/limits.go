// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/seats"
)

// Limits bound what callers can cost. A limit of 0 is its default.
type Limits struct {
	// Streams is how many streams are open at the same time. Default DefaultStreams.
	Streams int
	// StreamsPerCaller is how many of them one caller has. Default DefaultStreamsPerCaller.
	StreamsPerCaller int
	// StreamMemory is how many bytes of messages streams hold together, besides the 64 MiB of the newest ones that they
	// share. Default DefaultStreamMemory.
	StreamMemory int64
	// Requests is how many requests that are no streams are under way at the same time. Default rest.DefaultRequests.
	Requests int
}

// partsBytes is what the parts of episodes take that streams share, besides 16 KiB of each episode.
const partsBytes = 32 << 20

// Defaults of Limits, for 512 MiB of memory: a stream costs some 80 KiB besides messages.
const (
	DefaultStreams                = 1024
	DefaultStreamsPerCaller       = 128
	DefaultStreamMemory     int64 = 128 << 20
)

func (l Limits) orDefaults() Limits {
	if l.Streams <= 0 {
		l.Streams = DefaultStreams
	}
	if l.StreamsPerCaller <= 0 {
		l.StreamsPerCaller = DefaultStreamsPerCaller
	}
	if l.StreamMemory <= 0 {
		l.StreamMemory = DefaultStreamMemory
	}
	return l
}

// seat gives a caller a seat for a stream, until leave is called.
func (g *Gateway) seat(caller string) (leave func(), refused *refusal.Error) {
	leave, full := g.seats.Take(caller)
	switch full {
	case seats.ForCaller:
		return nil, &refusal.Error{Status: http.StatusTooManyRequests, Reason: refusal.TooManyStreams,
			RetryAfter: 10 * time.Second,
			Message:    caller + " has as many streams open as one caller may have: end one first"}
	case seats.ForAll:
		return nil, &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.GatewayFull,
			RetryAfter: 5 * time.Second,
			Message:    "the gateway has as many streams open as it may have, try again"}
	}
	return leave, nil
}

// memory bounds the bytes of messages that streams hold: one half for those that are kept while a history is walked,
// which is never waited for, and one for those that are being sent. Who waits for that half holds nothing of it, so
// that no two wait for each other. It implements follow.Memory.
type memory struct {
	kept, sent *semaphore.Weighted
	most       int64 // of sent
}

func newMemory(bytes int64) *memory {
	half := max(1, bytes/2)
	return &memory{kept: semaphore.NewWeighted(half), sent: semaphore.NewWeighted(half), most: half}
}

// Keep implements follow.Memory.
func (m *memory) Keep(bytes int) bool { return m.kept.TryAcquire(int64(bytes)) }

// Drop implements follow.Memory.
func (m *memory) Drop(bytes int) { m.kept.Release(int64(bytes)) }

// Borrow implements follow.Memory.
func (m *memory) Borrow(ctx context.Context, bytes int) (giveBack func(), err error) {
	n := min(int64(bytes), m.most)
	if err := m.sent.Acquire(ctx, n); err != nil {
		return nil, fmt.Errorf("waiting for memory: %w", err)
	}
	return func() { m.sent.Release(n) }, nil
}
