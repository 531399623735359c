// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testcluster starts a real kube-apiserver and etcd for tests, with Parley's resources installed.
package testcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"parley.dev/parley/api/v1beta1"
)

// Cluster is a running control plane without nodes.
type Cluster struct {
	// Config reaches it as an administrator, with no limit on the rate of requests.
	Config *rest.Config
	// Client reaches it without a cache.
	Client client.Client

	// env is how it was started; nil: another process has started it.
	env *envtest.Environment
}

// assetsVariable is the variable of the environment that names the folder with the programs of a control plane.
const assetsVariable = "KUBEBUILDER_ASSETS"

// programs are those of a control plane.
var programs = []string{"etcd", "kube-apiserver"}

// startTimeout is for how long each program of a control plane may start: seconds, but more than twenty where as many
// programs share two CPUs.
const startTimeout = 2 * time.Minute

// Start starts a control plane from the programs in $KUBEBUILDER_ASSETS and waits until its resources can be created.
// It ends with the test binary, also with one that is killed.
func Start(ctx context.Context) (*Cluster, error) {
	return StartWith(ctx, func(*envtest.ControlPlane) {})
}

// StartWith is Start with programs that have other arguments.
func StartWith(ctx context.Context, configure func(*envtest.ControlPlane)) (*Cluster, error) {
	if os.Getenv(assetsVariable) == "" {
		return nil, fmt.Errorf("%s is not set: run the tests with make test, or name a folder with etcd and kube-apiserver",
			assetsVariable)
	}
	dir, err := tether()
	defer func() { _ = os.RemoveAll(dir) }() // What runs needs its file no more.
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{Path("config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		ControlPlaneStartTimeout: startTimeout}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: filepath.Join(dir, "etcd")}
	env.ControlPlane.GetAPIServer().Path = filepath.Join(dir, "kube-apiserver")
	configure(&env.ControlPlane)
	cfg, err := env.Start()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	cluster, err := newCluster(cfg)
	if err != nil {
		return nil, err
	}
	cluster.env = env
	if err := cluster.warmUp(ctx); err != nil {
		return nil, err
	}
	return cluster, nil
}

// EtcdURL is where etcd serves clients.
func (c *Cluster) EtcdURL() string { return c.env.ControlPlane.Etcd.URL.String() }

// newCluster returns the cluster that the configuration reaches.
func newCluster(cfg *rest.Config) (*Cluster, error) {
	cfg.QPS = -1
	scheme := k8sruntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	if err := v1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("building the scheme: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &Cluster{Config: cfg, Client: c}, nil
}

// Stop ends the control plane, unless it is a shared one.
func (c *Cluster) Stop() error {
	if c.env == nil {
		return nil
	}
	if err := c.env.Stop(); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}

// warmUp creates an object of each kind once: an API server holds the first create of a new resource back for 2 s.
func (c *Cluster) warmUp(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: "warm-up", Namespace: metav1.NamespaceDefault}
	for _, o := range []client.Object{
		&v1beta1.Chat{ObjectMeta: meta},
		&v1beta1.ChatMessage{ObjectMeta: meta, Spec: v1beta1.ChatMessageSpec{ChatRef: v1beta1.ChatReference{Name: "none"},
			Content: "-"}},
		&v1beta1.ChatModelConfig{ObjectMeta: meta, Spec: v1beta1.ChatModelConfigSpec{
			Provider: v1beta1.ProviderOpenAICompatible, Model: "none", BaseURL: "http://model.invalid",
		}},
		&v1beta1.ChatQuota{ObjectMeta: meta,
			Spec: v1beta1.ChatQuotaSpec{Generating: v1beta1.GeneratingLimits{Chats: new(int32(0))}}},
		&v1beta1.ClusterChatQuota{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ClusterChatQuotaName}},
		&v1beta1.Workspace{ObjectMeta: meta, Spec: v1beta1.WorkspaceSpec{ChatRef: v1beta1.ChatReference{Name: "none"},
			Source: v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "none"}}}},
		&v1beta1.ChatDebugStep{ObjectMeta: meta, DebugRecording: v1beta1.DebugRecording{
			ChatRef: v1beta1.ChatReference{Name: "none"}, ChatUID: "none", Action: v1beta1.ActionGenerateAssistant, Call: 1,
			Pod:     "none",
			Attempt: 1, State: v1beta1.DebugInProgress, StartedAt: metav1.NowMicro(),
		}},
	} {
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				err := c.Client.Create(ctx, o)
				return err == nil || apierrors.IsAlreadyExists(err), nil
			})
		if err != nil {
			return fmt.Errorf("creating the first %T: %w", o, err)
		}
		if err := c.Client.Delete(ctx, o); err != nil {
			return fmt.Errorf("deleting the first %T: %w", o, err)
		}
	}
	return nil
}

// NeedsVersion skips the test on a cluster with an earlier version of Kubernetes.
func (c *Cluster) NeedsVersion(t testing.TB, major, minor uint) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		t.Fatalf("reading the API server's version: %v", err)
	}
	if v, err := version.ParseGeneric(info.GitVersion); err != nil || v.LessThan(version.MajorMinor(major, minor)) {
		t.Skipf("it needs Kubernetes %d.%d or later, and the API server has %s", major, minor, info.GitVersion)
	}
}

// Path is a path within the project, for a test that runs anywhere in it.
func Path(elements ...string) string {
	dir, err := os.Getwd()
	if err != nil {
		panic(fmt.Sprintf("finding the folder of the test: %v", err))
	}
	for root := dir; ; root = filepath.Dir(root) {
		if text, err := os.ReadFile(filepath.Join(root, "go.mod")); err == nil && strings.HasPrefix(string(text), module) {
			return filepath.Join(append([]string{root}, elements...)...)
		}
		if root == filepath.Dir(root) {
			panic("the test does not run within the project: " + dir)
		}
	}
}

// module is how the project's go.mod begins. The modules of tests have others.
const module = "module parley.dev/parley\n"
