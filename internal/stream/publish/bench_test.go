// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/internal/stream/publish"
)

// BenchmarkPart measures the way of one part through the unix socket, the relay and TCP to all of its readers: the next
// is published when each has it. At 64 parts per episode the cost of opening one is spread as it is in life.
func BenchmarkPart(b *testing.B) {
	for _, readers := range []int{1, 10} {
		b.Run(fmt.Sprintf("to %d readers", readers), func(b *testing.B) { benchmark(b, readers) })
	}
}

func benchmark(b *testing.B, readers int) {
	s := startSidecar(b)
	e := open(b, publish.New(s.Socket, "one", time.Now))
	var arrived, running sync.WaitGroup
	for range readers {
		running.Go(func() {
			for _, err := range newReader("good").Subscribe(b.Context(), "http://"+s.Address, episode1, 0) {
				if err != nil {
					return
				}
				arrived.Done()
			}
		})
	}
	const max = 8000 // what an episode holds, with room to spare
	n := 0
	var spent time.Duration
	for b.Loop() {
		if n++; n > max {
			continue
		}
		arrived.Add(readers)
		began := time.Now()
		e.Publish("Assistant", text(n))
		arrived.Wait()
		spent += time.Since(began)
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(min(n, max)), "ns/part")
	closeEpisode(b, e)
	running.Wait()
}
