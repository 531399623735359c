// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/test/kit/check"
)

// TestMetricsOfShardsAddUp: where there is one shard alone, nothing says so.
func TestMetricsOfShardsAddUp(t *testing.T) {
	all := prometheus.NewRegistry()
	for _, s := range []shard.Shard{{Index: 0, Total: 2}, {Index: 1, Total: 2}} {
		registry, err := registererOf(s, all)
		check.OK(t, err)
		gate := capacity.NewGate()
		for i, ns := range []string{"here", "elsewhere"} {
			gate.Hold(capacity.Chat{Key: types.NamespacedName{Namespace: ns}, Elsewhere: i != s.Index})
		}
		check.OK(t, registerGauges(registry, gate))
	}
	families, err := all.Gather()
	check.OK(t, err)
	sums := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			sums[family.GetName()] += m.GetGauge().GetValue()
		}
	}
	if sums["parley_chats_generating"] != 2 || sums["parley_manager_shards"] != 4 {
		t.Errorf("two managers, of a chat each, say %v together", sums)
	}
	one := prometheus.NewRegistry()
	if registry, err := registererOf(shard.Shard{}, one); err != nil || registry != prometheus.Registerer(one) {
		t.Errorf("of a single shard something is registered: %v", err)
	}
}

func TestTheGaugesSayHowManyGenerateAndWait(t *testing.T) {
	gate := capacity.NewGate()
	limits := capacity.OfCluster(nil)
	limits.All.Chats.Max = 1
	gate.SetCluster(limits)
	chat := func(name string, sub bool) capacity.Chat {
		return capacity.Chat{Key: types.NamespacedName{Namespace: "a", Name: name}, Sub: sub}
	}
	gate.Hold(chat("1", false))
	gate.Wait(chat("2", false))
	gate.Wait(chat("3", false))
	gate.Hold(chat("4", true))
	gate.Hold(chat("5", true))
	registry := prometheus.NewPedanticRegistry()
	check.OK(t, registerGauges(registry, gate))
	families, err := registry.Gather()
	check.OK(t, err)
	var got strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&got, family); err != nil {
			t.Fatal(err)
		}
	}
	want := `# HELP parley_chats_generating Chats that generate, in all namespaces of the manager.
# TYPE parley_chats_generating gauge
parley_chats_generating{level="root"} 1
parley_chats_generating{level="sub"} 2
# HELP parley_chats_generating_limit Chats that may generate at once, in all namespaces together.
# TYPE parley_chats_generating_limit gauge
parley_chats_generating_limit{level="root"} 1
parley_chats_generating_limit{level="sub"} 4000
# HELP parley_chats_waiting Chats that wait because as many generate as their quotas allow.
# TYPE parley_chats_waiting gauge
parley_chats_waiting{level="root"} 2
parley_chats_waiting{level="sub"} 0
`
	check.Equal(t, "gauges", want, got.String())
}
