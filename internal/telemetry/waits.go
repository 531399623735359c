// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// oldestWaits is a metric with the beginning of the oldest wait for each thing. The number of chats that wait cannot
// show that one is stuck, because in a busy cluster some always wait. It is read at each scrape.
type oldestWaits struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	since map[string]map[string]time.Time // by what ends the wait, and by chat
}

func newOldestWaits() *oldestWaits {
	return &oldestWaits{since: map[string]map[string]time.Time{},
		desc: prometheus.NewDesc(MetricOldestWait,
			"When the chat began to wait that has waited longest, by what ends the wait; absent while none waits.",
			[]string{LabelFor}, nil)}
}

func (w *oldestWaits) add(what, chat string, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since[what] == nil {
		w.since[what] = map[string]time.Time{}
	}
	w.since[what][chat] = since
}

func (w *oldestWaits) remove(what, chat string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.since[what], chat)
	if len(w.since[what]) == 0 {
		delete(w.since, what)
	}
}

// Describe implements prometheus.Collector.
func (w *oldestWaits) Describe(out chan<- *prometheus.Desc) { out <- w.desc }

// Collect implements prometheus.Collector.
func (w *oldestWaits) Collect(out chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, chats := range w.since {
		var oldest time.Time
		for _, since := range chats {
			if oldest.IsZero() || since.Before(oldest) {
				oldest = since
			}
		}
		out <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, float64(oldest.Unix()), what)
	}
}
