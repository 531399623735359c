// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/api/stream/parts"
)

func TestPartsGatherWhereManyEpisodesAreOpen(t *testing.T) {
	for name, c := range map[string]struct {
		live int64
		// sent is how many parts go with each write when one comes every 10 ms, and then the end.
		sent []int
	}{
		"an episode alone": {1, []int{1, 1, 1, 1, 1, 1}},
		"a few":            {5, []int{1, 1, 1, 1, 1, 1}},
		"many":             {101, []int{1, 2, 3}},
		"very many":        {10_000, []int{1, 3, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Episode{client: &Client{now: time.Now}, ending: make(chan struct{}), changed: make(chan struct{})}
				e.client.live.Store(c.live)
				go speak(e)
				var sent []int
				r := &body{ctx: t.Context(), e: e}
				for buffer := make([]byte, 4096); ; {
					n, err := r.Read(buffer)
					if errors.Is(err, io.EOF) {
						break
					}
					sent = append(sent, bytes.Count(buffer[:n], []byte("\n")))
				}
				if !slices.Equal(sent, c.sent) {
					t.Errorf("%v parts were sent together, want %v", sent, c.sent)
				}
			})
		})
	}
}

// speak publishes six parts, and ends the episode.
func speak(e *Episode) {
	for range 6 {
		e.Publish("Assistant", parts.Part{Type: parts.Text, Text: "x"})
		<-time.After(10*time.Millisecond - time.Nanosecond) // So that a part is there when a multiple of 10 ms is.
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end()
}
