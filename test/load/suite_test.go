// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package load plays what is long: the manager's controllers and a generation pod's runner in this process, against a
// real kube-apiserver and etcd and a scripted model over HTTP.
// Nothing is asserted about time; run with -v it says what was measured.
package load

import (
	"context"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/testmanager"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.Run(m, &cluster, startManager))
}

func startManager(ctx context.Context) (end func(), err error) {
	stop, err := testmanager.Start(ctx, cluster.Config)
	return func() { _ = stop() }, err
}

func read(t *testing.T, ns, name string, into client.Object) {
	t.Helper()
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, into); err != nil {
		t.Fatalf("reading %T %s: %v", into, name, err)
	}
}
