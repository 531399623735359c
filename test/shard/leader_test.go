// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/faultclient"
	"parley.dev/parley/test/kit/testmanager"
)

// replica starts a manager that works only while it leads its shard. wrap changes how it reaches the API server.
func replica(t *testing.T, s shard.Shard, wrap ...transport.WrapperFunc) *manager {
	t.Helper()
	as := rest.CopyConfig(cluster.Config)
	for _, w := range wrap {
		as.Wrap(w)
	}
	return startAs(t, as, shard.Scope{Shard: s}, faultclient.Options{}, func(o *testmanager.Options) {
		check.OK(t, controllers.ElectLeader(&o.Manager, o.Config, shard.Scope{Shard: s}, metav1.NamespaceDefault))
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

// slowLeases delays requests for leases, and counts those that were answered.
type slowLeases struct {
	http.RoundTripper

	answered *atomic.Int32
}

func (s slowLeases) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/leases") {
		return s.RoundTripper.RoundTrip(r)
	}
	select {
	case <-time.After(2 * time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	s.answered.Add(1)
	return s.RoundTripper.RoundTrip(r)
}

// TestLeaderStaysWhileAPIServerIsSlow renews a lease four times with 2 s for each request.
func TestLeaderStaysWhileAPIServerIsSlow(t *testing.T) {
	var answered atomic.Int32
	leader := replica(t, shardsOf(1)[0], func(next http.RoundTripper) http.RoundTripper {
		return slowLeases{next, &answered}
	})
	k := talkIn(t, namespaces(t, "slow-lease", 1, 1), 0)
	k.comeFar(1)
	renewed := answered.Load()
	eventually(t, "the lease is renewed", func() bool { return answered.Load() >= renewed+4 })
	k.comeFar(2)
	if !leader.worked() {
		t.Error("the leader does not work")
	}
	k.fallSilent()
	k.check()
}
