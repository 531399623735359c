// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops shows that GitOps tools and the operator share a namespace of chats without a fight: what Git holds is
// the users' and the tools' alone, what the operator writes is status and objects of its own, and neither undoes the
// other's work. It drives the engines of Flux and Argo CD, and kubectl itself, against a real kube-apiserver, etcd and
// garbage collector, with the real manager running. The generation pods' part is played through the same API that pods
// use, or by the real runner.
package gitops

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	parley "parley.dev/parley/controllers"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/testing/testcluster"
)

// operator is the name under which the manager writes in these tests, so that its writes can be told from all others.
const operator = "parley-manager"

var (
	cluster *testcluster.Cluster
	// kubeconfig is a file that reaches the cluster as an administrator.
	kubeconfig string
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "parley-gitops-")
	if err != nil {
		return failed(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if cluster, err = testcluster.Start(ctx); err != nil {
		return failed(err)
	}
	defer func() { _ = cluster.Stop() }()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*kube.NewKubeConfig(cluster.Config, ""), kubeconfig); err != nil {
		return failed(err)
	}
	for _, start := range []func(context.Context) (func(), error){startGarbageCollector, startManager} {
		stop, err := start(ctx)
		if err != nil {
			return failed(err)
		}
		defer stop()
	}
	return m.Run()
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// program is the path of one of the control plane's programs.
func program(name string) string { return filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name) }

// startGarbageCollector runs Kubernetes' own garbage collector, which removes what belongs to a deleted Chat.
func startGarbageCollector(parent context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(parent)
	cmd := exec.CommandContext(ctx, program("kube-controller-manager"), "--kubeconfig="+kubeconfig,
		"--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0")
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("starting the garbage collector: %w", err)
	}
	return func() { cancel(); _ = cmd.Wait() }, nil
}

// startManager runs the manager's controllers until stop is called, which waits for their end.
func startManager(parent context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(parent)
	cfg := rest.CopyConfig(cluster.Config)
	cfg.UserAgent = operator
	mgr, err := parley.NewManager(ctx, cfg, ctrl.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	err = parley.Setup(mgr, parley.Options{
		Pods:        podspec.Settings{Image: "parley:test", Issuer: "https://issuer.test"},
		PodCapacity: 32, PodIdle: time.Hour, Workers: 8, Now: time.Now,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() { cancel(); <-ended }, nil
}

// newNamespace creates an empty namespace.
func newNamespace(t *testing.T) string {
	t.Helper()
	name := "gitops-" + rand.String(8)
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

func create(t *testing.T, o client.Object) {
	t.Helper()
	if err := cluster.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// patience is how long a test waits for what must happen.
const patience = 120 * time.Second

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.After(patience); !condition(); {
		select {
		case <-deadline:
			t.Fatalf("waited in vain until %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
