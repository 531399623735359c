// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/internal/capacity"
)

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
	registry.MustRegister(gateGauges{gate})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&got, family); err != nil {
			t.Fatal(err)
		}
	}
	want := `# HELP parley_chats_generating Chats that generate, in all namespaces together.
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
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("gauges (-want +got):\n%s", diff)
	}
}
