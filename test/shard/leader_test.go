// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

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
		o.Controllers.Scope = shard.Scope{Shard: s}
		check.OK(t, controllers.ElectLeader(&o.Controllers, o.Config, metav1.NamespaceDefault))
	})
}

// worked reports whether the manager has written anything but Leases.
func (m *manager) worked() bool { return m.work() > 0 }

// work is how often the manager has written anything but Leases.
func (m *manager) work() (writes int) {
	for _, write := range m.process.Writes() {
		if !strings.HasPrefix(write.Resource, "leases") && !strings.HasPrefix(write.Resource, "events") {
			writes++
		}
	}
	return writes
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

// cutLeases fails requests for leases while cut is set, and counts the requests that fill the cache of messages.
type cutLeases struct {
	http.RoundTripper

	cut   *atomic.Bool
	fills *atomic.Int32
}

func (c cutLeases) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case c.cut.Load() && strings.Contains(r.URL.Path, "/leases"):
		return nil, errors.New("leases are out of reach")
	case strings.HasSuffix(r.URL.Path, "/v1beta1/chatmessages"):
		c.fills.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

func TestLeaderWithoutLeaseWaitsWithItsCaches(t *testing.T) {
	all := shardsOf(1)[0]
	var cut atomic.Bool
	var fills atomic.Int32
	first := replica(t, all, func(next http.RoundTripper) http.RoundTripper { return cutLeases{next, &cut, &fills} })
	k := talkIn(t, namespaces(t, "lost-lease", 1, 1), 0)
	k.comeFar(1)
	second, filled := replica(t, all), fills.Load()
	cut.Store(true)
	eventually(t, "the other manager works", second.worked)
	before := first.work()
	k.comeFar(2)
	if first.work() != before {
		t.Errorf("a manager without the lease writes %v", first.process.Writes())
	}
	cut.Store(false)
	second.stop()
	k.comeFar(2)
	if first.work() == before || fills.Load() != filled {
		t.Errorf("the first manager has written %d and then %d times, and filled its cache %d and then %d times", before,
			first.work(), filled, fills.Load())
	}
	k.fallSilent()
	k.check()
}
