// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Levels is a number of chats without a parent, and one of sub-chats.
type Levels struct{ Root, Sub int }

// Capacity has the figures of the gate that chats pass before they generate. They are read at each scrape.
type Capacity struct{ Generating, Waiting, Limit func() Levels }

// RegisterCapacity registers the gauges of the gate. None has a label for namespaces, of which there are too many.
func RegisterCapacity(registry prometheus.Registerer, c Capacity) error {
	var errs []error
	add := func(name, help string, read func() Levels) {
		register := func(level string, value func() int) {
			errs = append(errs, registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: name, Help: help, ConstLabels: prometheus.Labels{"level": level},
			}, func() float64 { return float64(value()) })))
		}
		register("root", func() int { return read().Root })
		register("sub", func() int { return read().Sub })
	}
	add(MetricGenerating, "Chats that generate, in all namespaces of the manager.", c.Generating)
	add(MetricWaiting, "Chats that wait because as many generate as their quotas allow.", c.Waiting)
	add(MetricGeneratingLimit, "Chats that may generate at once, in all namespaces together.", c.Limit)
	return errors.Join(errs...)
}

// RegisterShards registers the number of shards, if there are several.
func RegisterShards(registry prometheus.Registerer, total int) error {
	shards := prometheus.NewGauge(prometheus.GaugeOpts{Name: MetricShards,
		Help: "Shards that namespaces are shared out into, as the manager of one of them is configured."})
	shards.Set(float64(total))
	if err := registry.Register(shards); err != nil {
		return fmt.Errorf("registering the number of shards: %w", err)
	}
	return nil
}

// RegisterPolicies registers how many admission policies are missing.
func RegisterPolicies(registry prometheus.Registerer, missing func() int64) error {
	if err := registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: MetricPoliciesMissing,
		Help: "Admission policies that the API server does not enforce, as of the last minute: missing ones, those without " +
			"a binding that denies, or 1 if it accepts what they forbid.",
	}, func() float64 { return float64(missing()) })); err != nil {
		return fmt.Errorf("registering the check of the admission policies: %w", err)
	}
	return nil
}
