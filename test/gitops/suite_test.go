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

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/testmanager"
	"parley.dev/parley/test/kit/waiting"
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
	dir, err := os.MkdirTemp("", "parley-gitops-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	kubeconfig = filepath.Join(dir, "kubeconfig")
	return testcluster.Run(m, &cluster, writeKubeconfig, applyPolicies, startGarbageCollector, startManager)
}

func writeKubeconfig(context.Context) (end func(), err error) {
	return nil, cluster.WriteKubeconfig(kubeconfig)
}

// applyPolicies applies the policy by which prompts cannot change: Flux takes its refusal for an immutable field.
func applyPolicies(ctx context.Context) (end func(), err error) {
	out, err := exec.CommandContext(ctx, program("kubectl"), "--kubeconfig", kubeconfig, "apply", "--server-side", "-f",
		testcluster.Path("config", "admission", "redactions.yaml")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("applying policies: %w: %s", err, out)
	}
	return nil, cluster.AwaitPolicies(ctx)
}

// program is the path of one of the control plane's programs.
func program(name string) string { return filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), name) }

// startGarbageCollector runs Kubernetes' own garbage collector, which removes what belongs to a deleted Chat.
func startGarbageCollector(ctx context.Context) (stop func(), err error) {
	return testcluster.StartControllers(ctx, kubeconfig, 0, "garbage-collector-controller")
}

// startManager runs the manager's controllers, which write under a name of their own.
func startManager(ctx context.Context) (end func(), err error) {
	cfg := rest.CopyConfig(cluster.Config)
	cfg.UserAgent = operator
	stop, err := testmanager.Start(ctx, cfg)
	return func() { _ = stop() }, err
}

// newNamespace creates an empty namespace.
func newNamespace(t *testing.T) string {
	t.Helper()
	return cluster.Namespace(t, "gitops")
}

// patience is how long a test waits for what must happen.
const patience = 120 * time.Second

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	waiting.Until(t, patience, what, condition)
}
