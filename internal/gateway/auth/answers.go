// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"sync"
	"time"
)

// answers remembers answers of the API server for a while, a bounded number of them.
type answers[V any] struct {
	now func() time.Time

	mu    sync.Mutex
	known map[string]answer[V]
}

type answer[V any] struct {
	value   V
	expires time.Time
}

func newAnswers[V any](now func() time.Time) *answers[V] {
	return &answers[V]{now: now, known: map[string]answer[V]{}}
}

func (a *answers[V]) get(key string) (V, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[key]
	if !ok || !a.now().Before(found.expires) {
		var none V
		return none, false
	}
	return found.value, true
}

func (a *answers[V]) put(key string, v V, positive bool) {
	ttl := negativeTTL
	if positive {
		ttl = positiveTTL
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if len(a.known) >= maxAnswers {
		a.makeRoom(now)
	}
	a.known[key] = answer[V]{value: v, expires: now.Add(ttl)}
}

// makeRoom forgets what has expired, and if that is nothing, all: it costs one question each to learn it again.
func (a *answers[V]) makeRoom(now time.Time) {
	for key, known := range a.known {
		if !now.Before(known.expires) {
			delete(a.known, key)
		}
	}
	if len(a.known) >= maxAnswers {
		clear(a.known)
	}
}
