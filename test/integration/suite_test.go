// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the manager's controllers against a real kube-apiserver and etcd. The generation pods' part
// is played by the test itself, through the same API that pods use.
package integration

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/testmanager"
	"parley.dev/parley/test/kit/waiting"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.Run(m, &cluster, startManager))
}

// endManager ends the manager that runs.
var endManager func() error

// managerCache is what the manager that runs reads.
var managerCache client.Reader

func startManager(ctx context.Context) (end func(), err error) {
	endManager, err = testmanager.Start(ctx, cluster.Config, rememberCache)
	return func() { _ = endManager() }, err
}

func rememberCache(o *testmanager.Options) {
	prepare := o.Prepare
	o.Prepare = func(m ctrl.Manager) error {
		managerCache = m.GetCache()
		if prepare == nil {
			return nil
		}
		return prepare(m)
	}
}

// stopManager ends the manager that runs, as a crash between two writes would; restart begins the next one.
func stopManager(t *testing.T) (restart func(change ...func(*testmanager.Options))) {
	t.Helper()
	_ = endManager() // It says what was cut short.
	return func(change ...func(*testmanager.Options)) {
		t.Helper()
		var err error
		if endManager, err = testmanager.Start(context.Background(), cluster.Config,
			append(change, rememberCache)...); err != nil {
			t.Fatalf("starting a manager: %v", err)
		}
	}
}

// namespace creates a namespace with a default ChatModelConfig.
func namespace(t *testing.T) string {
	t.Helper()
	ns := bareNamespace(t)
	create(t, chattest.In(ns, chattest.Config("default", chattest.Default)))
	return ns
}

func bareNamespace(t *testing.T) string {
	t.Helper()
	return cluster.Namespace(t, "t")
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	cluster.Create(t, o)
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	waiting.Until(t, patience, what, condition)
}

// parallel runs the test in parallel with others, in a namespace with a default ChatModelConfig.
func parallel(t *testing.T) string {
	t.Helper()
	t.Parallel()
	return namespace(t)
}

// parallelBare runs the test in parallel with others, in an empty namespace.
func parallelBare(t *testing.T) string {
	t.Helper()
	t.Parallel()
	return bareNamespace(t)
}
