// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"sync"
	"time"
)

const (
	// keptFor is how long what was fetched stands for what is there: each step of a turn needs it again.
	keptFor = 10 * time.Minute
	// keptBytes is how much is kept, the oldest first to go.
	keptBytes = 32 << 20
)

// kept is what was fetched. The zero value is empty.
type kept struct {
	mu      sync.Mutex
	entries map[string]content
	// order are the URLs, oldest first.
	order []string
	bytes int
}

type content struct {
	data []byte
	at   time.Time
}

func (k *kept) get(url string, now time.Time) ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(now, keptBytes)
	c, ok := k.entries[url]
	return c.data, ok
}

// put keeps what was just fetched.
func (k *kept) put(url string, data []byte, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.entries[url]; ok || len(data) > keptBytes {
		return // Somebody else fetched it at the same time.
	}
	k.drop(now, keptBytes-len(data))
	if k.entries == nil {
		k.entries = map[string]content{}
	}
	k.entries[url] = content{data, now}
	k.order = append(k.order, url)
	k.bytes += len(data)
}

// drop forgets what is too old, and the oldest until no more than limit bytes are left.
func (k *kept) drop(now time.Time, limit int) {
	for len(k.order) > 0 {
		oldest := k.entries[k.order[0]]
		if k.bytes <= limit && now.Sub(oldest.at) < keptFor {
			return
		}
		k.bytes -= len(oldest.data)
		delete(k.entries, k.order[0])
		k.order = k.order[1:]
	}
}
