// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
)

// errEnds says that a manager's life ends while a request waits.
var errEnds = errors.New("the manager ends")

// meter counts the requests of one manager, and can bound them: as a limit of requests a second does, but without time.
// Requests that fill its caches are not counted: each manager makes those, whatever there is to do. Nor are those that
// say of a message how its turn stands: there is one more where a turn takes long.
type meter struct {
	mu   sync.Mutex
	made int
	// left is how many more it may make, while bounded.
	left    int
	bounded bool
	// spent is closed when a request has to wait because none is left, and granted when there are more.
	spent, granted chan struct{}
	// ends is closed when the manager ends.
	ends <-chan struct{}
}

// metered is a transport of the manager.
type metered struct {
	*meter
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m *metered) RoundTrip(r *http.Request) (*http.Response, error) {
	if counts(r) {
		if err := m.take(r.Context()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // It was never read.
			}
			return nil, err
		}
	}
	return m.next.RoundTrip(r)
}

// take waits until the manager may make one more request.
func (m *meter) take(ctx context.Context) error {
	for granted := m.try(); granted != nil; granted = m.try() {
		select {
		case <-granted:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-m.ends:
			return errEnds
		}
	}
	return nil
}

// counts reports whether the request is about single objects.
func counts(r *http.Request) bool {
	switch {
	case strings.Contains(r.URL.Path, "/chatmessages/") && strings.HasSuffix(r.URL.Path, "/status"):
		return false
	case r.Method == http.MethodGet:
		return strings.Contains(r.URL.Path, "/namespaces/") && r.URL.Query().Get("watch") == ""
	}
	return true
}

// try counts a request. If there may be none, it returns what is closed when there are more.
func (m *meter) try() (granted <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bounded && m.left == 0 {
		select {
		case <-m.spent:
		default:
			close(m.spent)
		}
		return m.granted
	}
	m.left--
	m.made++
	return nil
}

// bound lets the manager make so many more requests, and no other. What it returns is closed once one has to wait.
func (m *meter) bound(requests int) (spent <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.granted != nil {
		close(m.granted)
	}
	m.bounded, m.left = true, requests
	m.spent, m.granted = make(chan struct{}), make(chan struct{})
	return m.spent
}

// requests are how many were made.
func (m *meter) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made
}
