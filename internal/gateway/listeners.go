// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import "sync"

// listeners are told when an object has changed. Changes that nobody has taken yet are one.
type listeners struct {
	mu sync.Mutex
	// of has the channels of those who listen, by the namespace and name of the object.
	of map[string]map[chan struct{}]struct{}
}

// listen begins to listen for an object, which need not exist. Call stop when done.
func (l *listeners) listen(key string) (changed <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]map[chan struct{}]struct{}{}
	}
	if l.of[key] == nil {
		l.of[key] = map[chan struct{}]struct{}{}
	}
	l.of[key][ch] = struct{}{}
	return ch, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.of[key], ch)
		if len(l.of[key]) == 0 {
			delete(l.of, key)
		}
	}
}

// tell says that an object has changed.
func (l *listeners) tell(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ch := range l.of[key] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
