// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

// answers remembers answers of the API server for a while, a bounded number of them. Negative ones have room of their
// own: anybody can cause those.
type answers[V any] struct {
	now                func() time.Time
	positive, negative *cache.LRUExpireCache
}

// answer is what the API server said to a question that was asked at a time.
type answer[V any] struct {
	value V
	asked time.Time
}

// clock is the time for a cache.
type clock func() time.Time

// Now implements cache.Clock.
func (c clock) Now() time.Time { return c() }

func newAnswers[V any](now func() time.Time) *answers[V] {
	return &answers[V]{
		now:      now,
		positive: cache.NewLRUExpireCacheWithClock(maxAnswers, clock(now)),
		negative: cache.NewLRUExpireCacheWithClock(maxRefusals, clock(now)),
	}
}

func (a *answers[V]) get(key string) (answer[V], bool) {
	for _, known := range []*cache.LRUExpireCache{a.positive, a.negative} {
		if found, ok := known.Get(key); ok {
			return found.(answer[V]), true
		}
	}
	return answer[V]{}, false
}

// put remembers the newest answer, from when it was asked for.
func (a *answers[V]) put(key string, v answer[V], positive bool) {
	known, other, ttl := a.negative, a.positive, negativeTTL
	if positive {
		known, other, ttl = a.positive, a.negative, positiveTTL
	}
	other.Remove(key)
	known.Add(key, v, ttl-a.now().Sub(v.asked))
}
