// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"sync"
)

// queue holds the recordings that wait to be written, in their order. A newer one of the same attempt at a call takes
// the older one's place, since it says the same and more: so there are never more than the attempts that were not
// written yet.
type queue struct {
	most int
	// filled has an entry while something may wait.
	filled chan struct{}

	mu      sync.Mutex
	order   []string
	waiting map[string]snapshot
}

func newQueue(most int) *queue {
	return &queue{most: most, filled: make(chan struct{}, 1), waiting: map[string]snapshot{}}
}

// put adds a recording. It reports false, and adds nothing, if there is no room.
func (q *queue) put(s snapshot) bool {
	key := fmt.Sprintf("%s/%s/%d", s.chatUID, s.name(), s.attempt)
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, waits := q.waiting[key]; !waits {
		if len(q.order) == q.most {
			return false
		}
		q.order = append(q.order, key)
	}
	q.waiting[key] = s
	select {
	case q.filled <- struct{}{}:
	default:
	}
	return true
}

// take takes the first recording, if one waits.
func (q *queue) take() (s snapshot, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return snapshot{}, false
	}
	key := q.order[0]
	q.order = q.order[1:]
	s = q.waiting[key]
	delete(q.waiting, key)
	return s, true
}
