// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestOneCallWaitsOutAShortRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead time.Duration
		target := &Target{Config: chattest.Config("c"), models: New(Options{
			Now: func() time.Time { return time.Now().Add(ahead) }, Configs: cache.NewStore(cache.MetaNamespaceKeyFunc)})}
		target.NoteFailure(&v1beta1.GenerationError{Reason: v1beta1.ErrorRateLimited, RetryAfterSeconds: new(int32(1))})
		ahead = 500 * time.Millisecond
		began := time.Now()
		var calls sync.WaitGroup
		var allowed, refused atomic.Int32
		for range 5 {
			calls.Go(func() {
				if e := target.MayCall(t.Context()); e == nil && time.Since(began) == 500*time.Millisecond {
					allowed.Add(1)
				} else if e != nil && e.Retryable && time.Since(began) == 0 {
					refused.Add(1)
					if s := e.RetryAfterSeconds; s != nil { // The API takes none below 1, which would prolong the wait.
						t.Errorf("a call is told to wait %d s", *s)
					}
				}
			})
		}
		calls.Wait()
		check.Equal(t, "calls", []any{1, 4}, []any{allowed.Load(), refused.Load()})
		if e := target.MayCall(t.Context()); e != nil {
			t.Errorf("after the wait: %+v", e)
		}
	})
}

func TestOldRetryAfterHidesNoNewerOne(t *testing.T) {
	models := New(Options{Now: time.Now, Configs: cache.NewStore(cache.MetaNamespaceKeyFunc)})
	of := func(generation int64) *Target {
		target := &Target{Config: chattest.Config("c"), models: models}
		target.Config.Generation = generation
		return target
	}
	for _, c := range []struct {
		generation int64
		seconds    int32
	}{{1, 3600}, {2, 60}, {1, 3600}} { // The last call of the older one ends late.
		of(c.generation).NoteFailure(&v1beta1.GenerationError{Reason: v1beta1.ErrorRateLimited,
			RetryAfterSeconds: new(c.seconds)})
	}
	if e := of(2).MayCall(t.Context()); e == nil || *e.RetryAfterSeconds > 60 {
		t.Errorf("the call of the newer one may be made: %+v", e)
	}
}
