// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
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
	return all, telemetry.RegisterShards(all, s.Total)
}

// registerGauges registers the gauges of the gate.
func registerGauges(registry prometheus.Registerer, gate *capacity.Gate) error {
	levels := func(c capacity.Counts) telemetry.Levels { return telemetry.Levels{Root: c.Chats, Sub: c.SubChats} }
	return telemetry.RegisterCapacity(registry, telemetry.Capacity{
		Generating: func() telemetry.Levels {
			generating, _ := gate.Counts()
			return levels(generating)
		},
		Waiting: func() telemetry.Levels {
			_, waiting := gate.Counts()
			return levels(waiting)
		},
		Limit: func() telemetry.Levels {
			limits := gate.Limits()
			return telemetry.Levels{Root: int(limits.Chats.Max), Sub: int(limits.SubChats.Max)}
		},
	})
}
