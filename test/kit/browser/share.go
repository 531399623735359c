// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"os"
	"slices"
	"sync"
	"testing"
)

// shared is the browser of all tests of the package; nil: each test has its own.
var shared *sharing

// sharing starts a browser for the first test that needs it, and keeps it for the others.
type sharing struct {
	mu      sync.Mutex
	browser *Browser
	ends    []func()
}

// Share runs the tests of a package in one browser, which takes a second of CPU time to start. Every tab has a storage
// of its own. It returns the exit code.
func Share(m *testing.M) int {
	shared = &sharing{}
	defer shared.end()
	return m.Run()
}

func (s *sharing) browserOf(t testing.TB) *Browser {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.browser == nil {
		s.browser = start(&starter{t, s}, nil)
	}
	return s.browser
}

func (s *sharing) end() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

// starter is the test that starts the shared browser, which outlives it.
type starter struct {
	testing.TB
	sharing *sharing
}

// Cleanup implements testing.TB.
func (s *starter) Cleanup(end func()) { s.sharing.ends = append(s.sharing.ends, end) }

// TempDir implements testing.TB.
func (s *starter) TempDir() string {
	dir, err := os.MkdirTemp("", "browser-")
	if err != nil {
		s.Fatalf("making a folder for the browser: %v", err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
