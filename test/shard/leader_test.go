// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/test/kit/faultclient"
	"parley.dev/parley/test/kit/testmanager"
)

// replica starts a manager that works only while it leads its shard.
func replica(t *testing.T, s shard.Shard) *manager {
	t.Helper()
	return startWith(t, shard.Scope{Shard: s}, faultclient.Options{}, func(o *testmanager.Options) {
		controllers.ElectLeader(&o.Manager, shard.Scope{Shard: s})
		o.Manager.LeaderElectionNamespace = metav1.NamespaceDefault
	})
}

// worked reports whether the manager has written anything but Leases.
func (m *manager) worked() bool {
	for _, write := range m.process.Writes() {
		if !strings.HasPrefix(write.Resource, "leases") && !strings.HasPrefix(write.Resource, "events") {
			return true
		}
	}
	return false
}

func TestSingleReplicaRunsEachShardUntilFailover(t *testing.T) {
	shards := shardsOf(2)
	first := replica(t, shards[0])
	k := talkIn(t, namespaces(t, "led", 2, 2), 0)
	eventually(t, "the first shard goes on", func() bool { return k.turnsIn(0, 2) > 0 })
	second, standby := replica(t, shards[1]), replica(t, shards[0])
	k.comeFar(2) // The leader of one shard does not keep that of the other out.
	if standby.worked() {
		t.Errorf("two replicas of a shard work at once: %v", standby.process.Writes())
	}
	first.stop()
	k.comeFar(2)
	if !standby.worked() || !second.worked() {
		t.Error("a replica leads, and does not work")
	}
	k.fallSilent()
	k.check()
}

// TestStandbyReplacesKilledLeader cuts the leader off from the API server, so that it cannot give up its lease.
func TestStandbyReplacesKilledLeader(t *testing.T) {
	all := shardsOf(1)[0]
	leader := replica(t, all)
	k := talkIn(t, namespaces(t, "killed", 1, 1), 0)
	k.comeFar(2)
	standby := replica(t, all)
	leader.process.Kill()
	k.comeFar(2)
	if !standby.worked() {
		t.Error("the standby does not work")
	}
	k.fallSilent()
	k.check()
}
