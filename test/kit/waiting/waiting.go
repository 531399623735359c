// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package waiting waits in tests for what others must bring about.
package waiting

import (
	"testing"
	"time"
)

// interval is the time between two looks: short against what a test takes,
// long against what a look costs an API server.
const interval = 5 * time.Millisecond

// Until waits until the condition holds. It fails the test when it does not within the time; what completes "waited in
// vain until".
func Until(t testing.TB, within time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.After(within); !condition(); {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(interval):
		}
	}
}
