// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limit bounds how much is in use at the same time, such as requests or bytes, in all and for each caller.
package limit

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Limiter bounds a number of units. It is safe for concurrent use.
type Limiter struct {
	*semaphore.Weighted
	// Size is how many units there are.
	Size int64
}

// New makes a limiter of so many units.
func New(size int64) Limiter { return Limiter{semaphore.NewWeighted(size), size} }

// Acquire waits for n units until ctx is done, for all units if there are not as many, and not at all for none. Call
// release when done.
func (l Limiter) Acquire(ctx context.Context, n int64) (release func(), err error) {
	held, err := l.Hold(ctx, n)
	if err != nil {
		return nil, err
	}
	return func() { held.Keep(0) }, nil
}

// Held are acquired units, which can be released in parts. The zero Held has none. It belongs to one goroutine.
type Held struct {
	limiter Limiter
	units   int64
}

// Hold acquires units as Acquire does. Call Keep with 0 when done.
func (l Limiter) Hold(ctx context.Context, n int64) (*Held, error) {
	n = min(n, l.Size)
	if n <= 0 { // It waits for no one.
		return &Held{}, nil
	}
	if err := l.Weighted.Acquire(ctx, n); err != nil {
		return &Held{}, err
	}
	return &Held{l, n}, nil
}

// Keep releases all but n of the units.
func (h *Held) Keep(n int64) {
	if n < h.units {
		h.limiter.Release(h.units - n)
		h.units = n
	}
}

var (
	// ErrCaller means that a caller has as many units as one may have.
	ErrCaller = errors.New("the limit of one caller is reached")
	// ErrTotal means that all callers together have all units.
	ErrTotal = errors.New("the limit is reached")
)

// PerCaller bounds a number of units, and how many of them one caller has, so that no caller can take all. It is safe
// for concurrent use.
type PerCaller struct {
	total, caller int64

	mu      sync.Mutex
	used    int64
	callers map[string]int64
}

// NewPerCaller makes a limiter of so many units in total, of which one caller has at most so many.
func NewPerCaller(total, caller int64) *PerCaller {
	return &PerCaller{total: total, caller: caller, callers: map[string]int64{}}
}

// Lease is what one request of a caller has. Release it when done.
type Lease struct {
	limiter *PerCaller
	caller  string
	units   int64
}

// Lease begins a lease of a caller, which has no units yet.
func (p *PerCaller) Lease(caller string) *Lease { return &Lease{limiter: p, caller: caller} }

// Grow takes n units more. It does not wait, and fails with ErrCaller or ErrTotal.
func (l *Lease) Grow(n int64) error {
	p := l.limiter
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.callers[l.caller]+n > p.caller:
		return ErrCaller
	case p.used+n > p.total:
		return ErrTotal
	}
	p.add(l, n)
	return nil
}

// Release gives all units back.
func (l *Lease) Release() {
	l.limiter.mu.Lock()
	defer l.limiter.mu.Unlock()
	l.limiter.add(l, -l.units)
}

// add adds units to those of a lease. The caller holds mu.
func (p *PerCaller) add(l *Lease, n int64) {
	l.units += n
	p.used += n
	if p.callers[l.caller] += n; p.callers[l.caller] == 0 {
		delete(p.callers, l.caller)
	}
}
