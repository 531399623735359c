// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fileurl

import (
	"sync"
	"time"
)

const (
	// refusedFor is how long a provider is not handed a URL again that it has refused: each step of a turn has it.
	refusedFor = 10 * time.Minute
	// maxRefusals is how many are remembered, far more than the chats of a pod have.
	maxRefusals = 4096
)

// refusals are the URLs that a provider has refused of late.
type refusals struct {
	now   func() time.Time
	mu    sync.Mutex
	until map[string]time.Time
}

func (r *refusals) has(url string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now().Before(r.until[url])
}

func (r *refusals) add(urls []string) {
	if len(urls) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for url, until := range r.until {
		if !now.Before(until) {
			delete(r.until, url)
		}
	}
	if r.until == nil || len(r.until)+len(urls) > maxRefusals {
		r.until = map[string]time.Time{}
	}
	for _, url := range urls {
		r.until[url] = now.Add(refusedFor)
	}
}
