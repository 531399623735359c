// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package pty

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/test/kit/waiting"
)

// Output is what a program writes while it runs.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String is what was written and not forgotten.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Sees waits until the words were written, and forgets what was written up to their end.
func (o *Output) Sees(t testing.TB, words string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("it shows %q instead of %q", o.String(), words)
		}
	}()
	waiting.Until(t, time.Minute, "the words are shown", func() bool { return o.forget(words) })
}

func (o *Output) forget(words string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := strings.Index(o.b.String(), words)
	if at < 0 {
		return false
	}
	o.b.Next(at + len(words))
	return true
}
