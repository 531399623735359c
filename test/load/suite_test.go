// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load plays what is long: the manager's controllers and a generation pod's runner in this process, against a real
// kube-apiserver and etcd and a scripted model over HTTP. Nothing is asserted about time; run with -v it says what was measured.
package load

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/testing/testcluster"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	if cluster, err = testcluster.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = cluster.Stop() }()
	ended, err := startManager(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { cancel(); <-ended }()
	return m.Run()
}

// startManager runs the manager's controllers until ctx is done.
func startManager(ctx context.Context) (ended chan error, err error) {
	mgr, err := controllers.NewManager(ctx, cluster.Config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	if err := controllers.Setup(mgr, controllers.Options{
		Pods:        podspec.Settings{Image: "parley:test", Issuer: "https://issuer.test"},
		PodCapacity: 32, PodIdle: time.Hour, Workers: 8, Now: time.Now,
	}); err != nil {
		return nil, err
	}
	ended = make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := cluster.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

func read(t *testing.T, ns, name string, into client.Object) {
	t.Helper()
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, into); err != nil {
		t.Fatalf("reading %T %s: %v", into, name, err)
	}
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, patience time.Duration, condition func() bool) {
	t.Helper()
	for deadline := time.After(patience); !condition(); {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
