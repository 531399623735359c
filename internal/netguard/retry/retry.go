// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retry runs operations again that failed, with growing pauses, for as long as their context lasts.
package retry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Backoff is how long to pause between tries: First, and twice as long each time up to Max. Each pause is up to a tenth
// shorter or longer, so that those who failed together do not come back together.
type Backoff struct{ First, Max time.Duration }

var (
	// APIServer is the Backoff of requests to the API server.
	APIServer = Backoff{100 * time.Millisecond, 5 * time.Second}
	// Stream is that of what a stream of the gateway waits for, while a person looks at it.
	Stream = Backoff{50 * time.Millisecond, time.Second}
	// RelayStart is that of looking for a relay that is starting, which costs microseconds.
	RelayStart = Backoff{5 * time.Millisecond, 50 * time.Millisecond}
	// Relay is that of a generation pod's requests to its relay.
	Relay = Backoff{20 * time.Millisecond, time.Second}
	// RelayKeys is that of the issuer's keys for the relay. A relay that wants none answers late, and not with an error.
	RelayKeys = Backoff{20 * time.Millisecond, 30 * time.Second}
	// Lock is that of a lock which another process holds.
	Lock = Backoff{100 * time.Millisecond, 5 * time.Second}
)

// Start begins a series of pauses.
func (b Backoff) Start() *Pauses {
	return &Pauses{backoff.ExponentialBackOff{
		InitialInterval: b.First, MaxInterval: b.Max, Multiplier: 2, RandomizationFactor: 0.1}}
}

// Pauses are those of one operation, for loops that Do does not fit. They are not safe for concurrent use.
type Pauses struct{ backoff.ExponentialBackOff }

// Wait pauses after a try that failed. If ctx ends before, the error has its cause and that of the failed try.
func (p *Pauses) Wait(ctx context.Context, failed error) error {
	end := Sleep(ctx, p.NextBackOff())
	if end == nil || failed == nil || errors.Is(failed, context.Cause(ctx)) {
		return end
	}
	return fmt.Errorf("%w: %w", end, failed)
}

// Do runs an operation until it succeeds, or fails with an error that is final by one of the functions. If ctx ends
// before, the error has its cause and that of the last try.
func Do[T any](
	ctx context.Context, b Backoff, operation func(context.Context) (T, error), final ...func(error) bool,
) (T, error) {
	for pauses := b.Start(); ; {
		result, err := operation(ctx)
		if err == nil || slices.ContainsFunc(final, func(is func(error) bool) bool { return is(err) }) {
			return result, err
		}
		if err := pauses.Wait(ctx, err); err != nil {
			return result, err
		}
	}
}

// Sleep waits for a time. If ctx ends before, the error is its cause, and wraps its error as well.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return endError{context.Cause(ctx), ctx.Err()}
	}
}

// endError is the cause for which a context ended, and the context's error.
type endError struct {
	error
	of error
}

// Unwrap returns both.
func (e endError) Unwrap() []error { return []error{e.error, e.of} }
