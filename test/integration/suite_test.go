// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the manager's controllers against a real kube-apiserver and etcd. The generation pods' part
// is played by the test itself, through the same API that pods use.
package integration

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/testing/testcluster"
)

// podCapacity is how many chats a generation pod takes in these tests.
const podCapacity = 32

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
	if endManager, err = startManager(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { endManager() }()
	return m.Run()
}

// endManager ends the manager that runs.
var endManager func()

// stopManager ends the manager that runs, as a crash between two writes would; restart begins the next one.
func stopManager(t *testing.T) (restart func(change ...func(*controllers.Options))) {
	t.Helper()
	endManager()
	return func(change ...func(*controllers.Options)) {
		t.Helper()
		var err error
		if endManager, err = startManager(context.Background(), change...); err != nil {
			t.Fatalf("starting a manager: %v", err)
		}
	}
}

// startManager runs the manager's controllers until stop is called, which waits for their end.
func startManager(parent context.Context, change ...func(*controllers.Options)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(parent)
	mgr, err := controllers.NewManager(ctx, cluster.Config, ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	o := controllers.Options{
		Pods:        podspec.Settings{Image: "parley:test", Issuer: "https://issuer.test"},
		PodCapacity: podCapacity, PodIdle: time.Hour, Workers: 8, Now: time.Now,
	}
	for _, c := range change {
		c(&o)
	}
	err = controllers.Setup(mgr, o)
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() { cancel(); <-ended }, nil
}

// namespace creates a namespace with a default ChatModelConfig.
func namespace(t *testing.T) string {
	t.Helper()
	ns := bareNamespace(t)
	create(t, &v1alpha1.ChatModelConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: ns},
		Spec: v1alpha1.ChatModelConfigSpec{
			Default: true, Provider: v1alpha1.ProviderOpenAICompatible, Model: "scripted", BaseURL: "http://127.0.0.1:1/v1",
		},
	})
	return ns
}

func bareNamespace(t *testing.T) string {
	t.Helper()
	name := "t-" + rand.String(8)
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := cluster.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// eventually waits until the condition holds. The test's own deadline is the only limit.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
