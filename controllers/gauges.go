// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/internal/telemetry"
)

// Gauges of the gate, each for chats without a parent (root) and for sub-chats (sub). None has a label for namespaces,
// of which there are too many.
var (
	generatingChats = gauge(telemetry.MetricGenerating, "Chats that generate, in all namespaces of the manager.")
	waitingChats    = gauge(telemetry.MetricWaiting, "Chats that wait because as many generate as their quotas allow.")
	generatingLimit = gauge(telemetry.MetricGeneratingLimit,
		"Chats that may generate at once, in all namespaces together.")
)

func gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, []string{"level"}, nil)
}

// registererOf adds the shard to what is registered, if it is one of several, and how many there are.
func registererOf(s shard.Shard, all prometheus.Registerer) (prometheus.Registerer, error) {
	if s.IsAll() {
		return all, nil
	}
	all = prometheus.WrapRegistererWith(prometheus.Labels{telemetry.LabelShard: strconv.Itoa(s.Index)}, all)
	total := prometheus.NewGauge(prometheus.GaugeOpts{Name: telemetry.MetricShards,
		Help: "Shards that namespaces are shared out into, as the manager of one of them was told."})
	total.Set(float64(s.Total))
	if err := all.Register(total); err != nil {
		return nil, fmt.Errorf("registering the number of shards: %w", err)
	}
	return all, nil
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
