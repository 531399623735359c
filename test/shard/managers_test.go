// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/faultclient"
	"parley.dev/parley/test/kit/testmanager"
)

// manager is one that runs.
type manager struct {
	*meter
	shard.Scope
	process *faultclient.Process
	// view is what it has in its caches.
	view cache.Cache
	// registry has its metrics.
	registry *prometheus.Registry
	stop     func()
}

// start starts the manager of a scope, and waits until its caches are full. It ends with the test, or before.
func start(t *testing.T, s shard.Scope) *manager {
	t.Helper()
	return startWith(t, s, faultclient.Options{})
}

// startLagging starts managers that see each in its own time what happens.
func startLagging(t *testing.T, shards []shard.Shard) (all []*manager) {
	t.Helper()
	for i, s := range shards {
		lags := faultclient.Options{WatchDelay: func(resource string) time.Duration {
			return time.Duration((i+len(resource))%3) * 15 * time.Millisecond
		}}
		all = append(all, startWith(t, shard.Scope{Shard: s}, lags))
	}
	return all
}

func startWith(t *testing.T, s shard.Scope, o faultclient.Options, change ...func(*testmanager.Options)) *manager {
	t.Helper()
	return startAs(t, cluster.Config, s, o, change...)
}

// startAs starts a manager that reaches the API server with that configuration.
func startAs(t *testing.T, as *rest.Config, s shard.Scope, o faultclient.Options,
	change ...func(*testmanager.Options)) *manager {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	m := &manager{Scope: s, process: faultclient.New(o), registry: prometheus.NewRegistry(),
		meter: &meter{ends: ctx.Done()}}
	cfg := m.process.Config(as)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &metered{m.meter, next} })
	stop, err := testmanager.Start(ctx, cfg, append(change, func(o *testmanager.Options) {
		o.Controllers.Scope, o.Controllers.Metrics = s, m.registry
		o.Prepare = func(mgr ctrl.Manager) error { m.view = mgr.GetCache(); return nil }
	})...)
	check.OK(t, err)
	ended := false
	m.stop = func() {
		if !ended {
			ended = true
			end()
			_ = stop() // It says what was cut short.
		}
	}
	t.Cleanup(m.stop)
	if !m.view.WaitForCacheSync(t.Context()) {
		t.Fatal("the manager ended")
	}
	return m
}

// startAll starts the managers of the shards.
func startAll(t *testing.T, shards []shard.Shard) (all []*manager) {
	t.Helper()
	for _, s := range shards {
		all = append(all, start(t, shard.Scope{Shard: s}))
	}
	return all
}

func stopAll(managers []*manager) {
	for _, m := range managers {
		m.stop()
	}
}
