// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxValues is how many values of one label a metric tells apart; the API's longest enum has about 20.
const maxValues = 64

// bound keeps a label's values few, whatever is said to be one.
type bound struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (b *bound) of(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.seen[value]:
		return value
	case len(b.seen) >= maxValues:
		return Other
	case b.seen == nil:
		b.seen = map[string]bool{}
	}
	b.seen[value] = true
	return value
}

// bounds are those of the labels whose values come from elsewhere.
type bounds struct{ provider, model, reason, tool bound }

// metrics collects what one program registers.
type metrics struct{ registry prometheus.Registerer }

func (m metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(g)
	return g
}

func (m metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// Buckets, in seconds and bytes. A turn takes from a second to an hour, a commit some milliseconds, a tool's call from
// milliseconds to the 4 hours that a command may take, its result at most the 32 KiB to which it is cut.
var (
	bucketsTurn   = []float64{.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 3600}
	bucketsWait   = []float64{1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600}
	bucketsTool   = []float64{.005, .025, .1, .5, 1, 2.5, 10, 30, 60, 300, 1800, 14400}
	bucketsCall   = []float64{.25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
	bucketsFirst  = []float64{.05, .1, .25, .5, 1, 2, 4, 8, 16, 32, 64, 128}
	bucketsCommit = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	bucketsSize   = []float64{64, 256, 1024, 4096, 16384, 32768, 65536, 262144, 1048576}
)
