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

// answer is what the API server said to a question that was asked at a time.
type answer[V any] struct {
	value   V
	asked   time.Time
	expires time.Time
}

func newAnswers[V any](now func() time.Time) *answers[V] {
	return &answers[V]{now: now, known: map[string]answer[V]{}}
}

func (a *answers[V]) get(key string) (answer[V], bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[key]
	return found, ok && a.now().Before(found.expires)
}

// put remembers an answer. A negative one takes no room from others: anybody can cause those.
func (a *answers[V]) put(key string, v answer[V], positive bool) {
	ttl := negativeTTL
	if positive {
		ttl = positiveTTL
	}
	v.expires = v.asked.Add(ttl)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxAnswers {
		a.makeRoom(a.now(), positive)
	}
	if len(a.known) < maxAnswers {
		a.known[key] = v
	}
}

// makeRoom forgets what has expired, and if that is nothing and it must be,
// all: it costs one question each to learn it again.
func (a *answers[V]) makeRoom(now time.Time, must bool) {
	for key, known := range a.known {
		if !now.Before(known.expires) {
			delete(a.known, key)
		}
	}
	if must && len(a.known) >= maxAnswers {
		clear(a.known)
	}
}
