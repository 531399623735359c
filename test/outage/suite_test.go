// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outage lets chats talk while the API server is slow or etcd is full. Two managers elect a leader, a real
// generator works before a real kube-apiserver and etcd, and a scripted model counts its calls. Afterwards every
// message is answered once, and no call was made twice.
package outage

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"parley.dev/parley/controllers"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/testmanager"
	"parley.dev/parley/test/kit/waiting"
)

// patience is how long a test waits for something that must come.
const patience = 3 * time.Minute

// quota is how many bytes etcd stores: enough for the tests, and few to fill.
const quota = 96 << 20

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.RunWith(m, &cluster, func(c *envtest.ControlPlane) {
		c.Etcd.Configure().Set("quota-backend-bytes", fmt.Sprint(quota))
	}))
}

// network delays requests to the API server, and notes how much longer the slowest one about a lease took.
type network struct{ delay, slowestLease atomic.Int64 }

// config is the cluster as it is reached by the network.
func (n *network) config() *rest.Config {
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return link{next, n} })
	return cfg
}

type link struct {
	http.RoundTripper

	network *network
}

// RoundTrip implements http.RoundTripper.
func (l link) RoundTrip(r *http.Request) (*http.Response, error) {
	delay := time.Duration(l.network.delay.Load())
	if strings.Contains(r.URL.Path, "/leases/") {
		defer l.network.note(time.Now().Add(delay))
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return l.RoundTripper.RoundTrip(r)
}

// note notes a request that began to be late at a time.
func (n *network) note(began time.Time) {
	took := time.Since(began).Nanoseconds()
	for slowest := n.slowestLease.Load(); took > slowest && !n.slowestLease.CompareAndSwap(slowest, took); {
		slowest = n.slowestLease.Load()
	}
}

// managers are two managers that elect a leader.
type managers struct {
	mu  sync.Mutex
	log strings.Builder
}

func startManagers(t *testing.T, n *network, namespace string) *managers {
	t.Helper()
	m := &managers{}
	for range 2 {
		stop, err := testmanager.Start(t.Context(), n.config(), func(o *testmanager.Options) {
			o.Manager.Logger = funcr.New(m.write, funcr.Options{})
			check.OK(t, controllers.ElectLeader(&o.Controllers, o.Config, namespace))
		})
		check.OK(t, err)
		t.Cleanup(func() { check.OK(t, stop()) })
	}
	return m
}

func (m *managers) write(_, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log.WriteString(line + "\n")
}

// logged is how often the managers have logged the words.
func (m *managers) logged(words string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Count(m.log.String(), words)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	waiting.Until(t, patience, what, condition)
}
