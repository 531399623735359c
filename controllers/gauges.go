// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/internal/telemetry"
)

// registererOf adds a label with the shard to all metrics if it is one of several, and registers how many there are.
func registererOf(s shard.Shard, all prometheus.Registerer) (prometheus.Registerer, error) {
	if s.IsAll() {
		return all, nil
	}
	all = prometheus.WrapRegistererWith(prometheus.Labels{telemetry.LabelShard: strconv.Itoa(s.Index)}, all)
	total := prometheus.NewGauge(prometheus.GaugeOpts{Name: telemetry.MetricShards,
		Help: "Shards that namespaces are shared out into, as the manager of one of them is configured."})
	total.Set(float64(s.Total))
	if err := all.Register(total); err != nil {
		return nil, fmt.Errorf("registering the number of shards: %w", err)
	}
	return all, nil
}

// registerGauges registers the gauges of the gate, each for chats without a parent (root) and for sub-chats (sub). None
// has a label for namespaces, of which there are too many.
func registerGauges(registry prometheus.Registerer, gate *capacity.Gate) error {
	var errs []error
	add := func(name, help string, read func() capacity.Counts) {
		register := func(level string, value func() int) {
			errs = append(errs, registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: name, Help: help, ConstLabels: prometheus.Labels{"level": level},
			}, func() float64 { return float64(value()) })))
		}
		register("root", func() int { return read().Chats })
		register("sub", func() int { return read().SubChats })
	}
	add(telemetry.MetricGenerating, "Chats that generate, in all namespaces of the manager.", func() capacity.Counts {
		generating, _ := gate.Counts()
		return generating
	})
	add(telemetry.MetricWaiting, "Chats that wait because as many generate as their quotas allow.",
		func() capacity.Counts {
			_, waiting := gate.Counts()
			return waiting
		})
	add(telemetry.MetricGeneratingLimit, "Chats that may generate at once, in all namespaces together.",
		func() capacity.Counts {
			limits := gate.Limits()
			return capacity.Counts{Chats: int(limits.Chats.Max), SubChats: int(limits.SubChats.Max)}
		})
	return errors.Join(errs...)
}
