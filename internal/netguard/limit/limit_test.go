// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package limit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/singleflight"

	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/test/kit/check"
)

func TestNoCallerTakesWhatAllShare(t *testing.T) {
	p := limit.NewPerCaller(3, 2)
	take := func(caller string, n int64, want error) *limit.Lease {
		t.Helper()
		l := p.Lease(caller)
		if err := l.Grow(n); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", caller, err, want)
		}
		return l
	}
	first := take("anna", 1, nil)
	take("anna", 1, nil)
	take("anna", 1, limit.ErrCaller)
	take("ben", 1, nil)
	take("ben", 1, limit.ErrTotal)
	first.Release()
	first.Release() // It has no more.
	take("ben", 1, nil)
	take("anna", 1, limit.ErrTotal)
}

func TestReleaseReturnsAllUnitsOfALease(t *testing.T) {
	p := limit.NewPerCaller(10, 10)
	l := p.Lease("anna")
	for _, n := range []int64{3, 7} {
		check.OK(t, l.Grow(n))
	}
	if err := l.Grow(1); !errors.Is(err, limit.ErrCaller) {
		t.Errorf("got %v", err)
	}
	l.Release()
	if err := p.Lease("ben").Grow(10); err != nil {
		t.Error(err)
	}
}

func TestAcquireWaitsForAtMostAllUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.New(100)
		release, err := l.Acquire(t.Context(), 1000)
		if err != nil || l.TryAcquire(1) {
			t.Fatalf("not all units were taken: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := l.Acquire(short, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := l.Acquire(short, 0); err != nil {
			t.Errorf("no units: %v", err)
		}
		time.AfterFunc(time.Minute, release)
		if release, err = l.Acquire(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		release()
		if !l.TryAcquire(100) {
			t.Error("units were lost")
		}
	})
}

func TestSharedCallOutlivesTheCallerThatBeganIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls singleflight.Group
		made := 0
		call := func(ctx context.Context) (int, error) {
			made++
			return made, retry.Sleep(ctx, time.Second)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() { _, _ = limit.Shared(short, &calls, "a", time.Minute, call) }()
		synctest.Wait()
		if _, err := limit.Shared(short, &calls, "a", time.Minute, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if got, err := limit.Shared(t.Context(), &calls, "a", time.Minute, call); got != 1 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		_, err := limit.Shared(t.Context(), &calls, "a", time.Millisecond, call)
		if !errors.Is(err, context.DeadlineExceeded) || made != 2 {
			t.Errorf("got %v after %d calls", err, made)
		}
	})
}
