// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/test/kit/check"
)

var (
	errBusy = errors.New("busy")
	errGone = errors.New("gone")
	errOver = errors.New("the client left")
)

func isGone(err error) bool { return errors.Is(err, errGone) }

func TestOperationIsRepeatedUntilItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		fails []error // the tries before the one that succeeds
		want  error
		tries int
	}{
		"success":                       {nil, nil, 1},
		"success after failures":        {[]error{errBusy, errBusy, errBusy}, nil, 4},
		"a final error":                 {[]error{errGone}, errGone, 1},
		"a final error after a failure": {[]error{errBusy, errGone}, errGone, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				got, err := retry.Do(t.Context(), retry.APIServer, func(context.Context) (int, error) {
					tries++
					if tries <= len(c.fails) {
						return 0, c.fails[tries-1]
					}
					return 7, nil
				}, isGone)
				if !errors.Is(err, c.want) || tries != c.tries || (err == nil) != (got == 7) {
					t.Errorf("got %d, %v after %d tries", got, err, tries)
				}
			})
		})
	}
}

func TestEndOfContextReportsTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		time.AfterFunc(time.Minute, func() { cancel(errOver) })
		_, err := retry.Do(ctx, retry.APIServer, func(context.Context) (int, error) { return 0, errBusy })
		if !errors.Is(err, errOver) || !errors.Is(err, errBusy) || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		check.Equal(t, "ended after", time.Minute, time.Since(began))
		_, err = retry.Do(ctx, retry.APIServer, func(ctx context.Context) (int, error) { return 0, context.Cause(ctx) })
		if err == nil || err.Error() != errOver.Error() {
			t.Errorf("an operation that ends with its context: %v", err)
		}
	})
}

func TestPausesGrowToTheirMaximum(t *testing.T) {
	pauses := retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}.Start()
	next := func(want time.Duration) {
		t.Helper()
		if got := pauses.NextBackOff(); got < want*9/10 || got > want*11/10+1 {
			t.Errorf("got %s, want about %s", got, want)
		}
	}
	for _, want := range []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000} {
		next(want * time.Millisecond)
	}
	pauses.Reset()
	next(100 * time.Millisecond)
}
