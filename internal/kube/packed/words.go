// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package packed

import (
	"strings"
	"sync"
)

const (
	// mostWords and longestWord, in bytes, bound what words cost: 1 MiB.
	mostWords   = 4096
	longestWord = 256
)

// words are texts that objects have in common, such as phases and reasons: each is kept once. They are learned from
// what is packed, and never forgotten. The zero value knows none. It is safe for concurrent use.
type words struct {
	mu      sync.RWMutex
	numbers map[string]int
	known   []string
}

// number is that of the word; false if it is none, because it is too long or there are too many.
func (w *words) number(s string) (int, bool) {
	w.mu.RLock()
	n, ok := w.numbers[s]
	w.mu.RUnlock()
	if ok || len(s) > longestWord {
		return n, ok
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, ok := w.numbers[s]; ok || len(w.known) == mostWords {
		return n, ok
	}
	if w.numbers == nil {
		w.numbers = map[string]int{}
	}
	s = strings.Clone(s)
	w.numbers[s] = len(w.known)
	w.known = append(w.known, s)
	return len(w.known) - 1, true
}

func (w *words) word(n int) string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.known[n]
}
