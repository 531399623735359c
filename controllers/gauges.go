// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"github.com/prometheus/client_golang/prometheus"

	"parley.dev/parley/internal/capacity"
	"parley.dev/parley/internal/telemetry"
)

// Gauges of the gate, each for chats without a parent (root) and for sub-chats (sub). None has a label for namespaces,
// of which there are too many.
var (
	generatingChats = gauge(telemetry.MetricGenerating, "Chats that generate, in all namespaces together.")
	waitingChats    = gauge(telemetry.MetricWaiting, "Chats that wait because as many generate as their quotas allow.")
	generatingLimit = gauge(telemetry.MetricGeneratingLimit,
		"Chats that may generate at once, in all namespaces together.")
)

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"level"}, nil)
}

// gateGauges reads the gate when it is asked, so that turns pay nothing for it.
type gateGauges struct {
	gate *capacity.Gate
}

// Describe implements prometheus.Collector.
func (g gateGauges) Describe(out chan<- *prometheus.Desc) {
	out <- generatingChats
	out <- waitingChats
	out <- generatingLimit
}

// Collect implements prometheus.Collector.
func (g gateGauges) Collect(out chan<- prometheus.Metric) {
	generating, waiting := g.gate.Counts()
	limits := g.gate.Limits()
	for _, m := range []struct {
		desc      *prometheus.Desc
		root, sub int
	}{
		{generatingChats, generating.Chats, generating.SubChats},
		{waitingChats, waiting.Chats, waiting.SubChats},
		{generatingLimit, int(limits.Chats.Max), int(limits.SubChats.Max)},
	} {
		out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(m.root), "root")
		out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(m.sub), "sub")
	}
}
