// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"

	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
)

// TestReshardingLosesNothingAndRepeatsNoCall lets people talk while one manager becomes two, three, and one again.
// Those before work on beside those after for a while, as they do while a change is rolled out, so that two managers
// with different views drive the same chats: each hears of some changes later than of others.
func TestReshardingLosesNothingAndRepeatsNoCall(t *testing.T) {
	k := talkIn(t, namespaces(t, "moved", 3, 3), 0)
	var all []*manager
	running := startLagging(t, []shard.Shard{{}})
	k.comeFar(1)
	for _, shards := range [][]shard.Shard{shardsOf(2), shardsOf(3), {{}}} {
		all = append(all, running...)
		before := running
		running = startLagging(t, shards)
		k.comeFar(3)
		stopAll(before)
		k.comeFar(2)
	}
	all = append(all, running...)
	k.fallSilent()
	k.check()
	turns := k.turnsIn(0, 1)
	counted := 0.0
	for _, m := range all {
		counted += m.counted(t, telemetry.MetricTurns)
	}
	// One that ends takes along what it was about to count.
	if lost := float64(testmanager.Workers * (len(all) - 1)); counted > float64(turns) || counted < float64(turns)-lost {
		t.Errorf("the managers counted %.0f turns, and there were %d", counted, turns)
	}
	t.Logf("%d managers took %d turns, one after the other and beside each other", len(all), turns)
}

// TestNamespaceResumesWhenLateManagerStarts takes the manager of a namespace away before the next one is there, as a
// change of the number of shards may.
func TestNamespaceResumesWhenLateManagerStarts(t *testing.T) {
	k := talkIn(t, namespaces(t, "late", 2, 2), 0)
	whole := start(t, shard.Scope{})
	k.comeFar(1)
	first := start(t, shard.Scope{Shard: shard.Shard{Index: 0, Total: 2}})
	whole.stop()
	before := k.turnsIn(0, 2)
	eventually(t, "the namespaces of the manager that is there go on", func() bool { return k.turnsIn(0, 2) > before+3 })
	start(t, shard.Scope{Shard: shard.Shard{Index: 1, Total: 2}})
	k.comeFar(2)
	first.stop()
	start(t, shard.Scope{Shard: shard.Shard{Index: 0, Total: 2}})
	k.comeFar(1)
	k.fallSilent()
	k.check()
}

// turnsIn are how many are over in the namespaces of a shard.
func (k *talk) turnsIn(index, total int) (n int) {
	for key, turns := range k.turns() {
		if ownerOf(key.Namespace, total) == index {
			n += turns
		}
	}
	return n
}

// counted is the sum of a counter, or of a gauge, of the manager.
func (m *manager) counted(t *testing.T, name string) (n float64) {
	t.Helper()
	families, err := m.registry.Gather()
	check.OK(t, err)
	for _, family := range families {
		if family.GetName() == name {
			for _, one := range family.GetMetric() {
				n += one.GetCounter().GetValue() + one.GetGauge().GetValue()
			}
		}
	}
	return n
}
