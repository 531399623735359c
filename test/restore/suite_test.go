// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore shows that chats come back from a backup: with everything real but the nodes and the model, which
// answers from a script and counts what it is asked. There are two clusters, each a kube-apiserver with etcd, Parley's
// roles and policies as they are installed, and the manager as its own account. Generators run in the test's process.
package restore

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"parley.dev/parley/internal/cli/verbs"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realpod"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/kit/testmanager"
	"parley.dev/parley/test/kit/waiting"
)

// origin is where chats are backed up, target is the other cluster.
var origin, target *testcluster.Cluster

// patience is how long a test waits for what must happen.
const patience = time.Minute

// auditLog is a file with the events of the target's API server.
var auditLog string

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.Run(m, &origin, startTarget,
		func(ctx context.Context) (func(), error) { return install(ctx, origin) },
		func(ctx context.Context) (func(), error) { return install(ctx, target) }))
}

// startTarget starts the other cluster, with an audit log.
func startTarget(ctx context.Context) (end func(), err error) {
	dir, err := os.MkdirTemp("", "parley-restore-")
	if err != nil {
		return nil, err
	}
	auditLog = filepath.Join(dir, "audit.log")
	target, err = testcluster.StartWith(ctx, func(c *envtest.ControlPlane) {
		c.APIServer.Configure().Set("audit-policy-file", testcluster.Path("config", "audit", "policy.yaml")).
			Set("audit-log-path", auditLog)
	})
	return func() { _ = target.Stop(); _ = os.RemoveAll(dir) }, err
}

// install installs Parley, and runs the manager as its account.
func install(ctx context.Context, c *testcluster.Cluster) (end func(), err error) {
	kustomizations := []string{testcluster.Path("config", "default")}
	_, err = c.Client.RESTMapper().RESTMapping(
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"}, "v1")
	if err == nil {
		kustomizations = append(kustomizations, testcluster.Path("config", "admission", "stamp"))
	} else if !apimeta.IsNoMatchError(err) {
		return nil, err
	}
	if err := c.Install(ctx, kustomizations...); err != nil {
		return nil, err
	}
	stop, err := testmanager.Start(ctx, as(c, "parley-system", "parley-manager"), func(o *testmanager.Options) {
		o.Controllers.GatewayNamespace = "parley-system"
	})
	return func() { _ = stop() }, err
}

// as reaches the cluster as a service account; extra are key and value of what else its token says.
func as(c *testcluster.Cluster, namespace, account string, extra ...string) *rest.Config {
	cfg := rest.CopyConfig(c.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: username(namespace, account),
		Groups: []string{"system:authenticated", "system:serviceaccounts"}}
	if len(extra) > 0 {
		cfg.Impersonate.Extra = map[string][]string{extra[0]: extra[1:]}
	}
	return cfg
}

func username(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// room is a namespace of a cluster, with generators for its pods.
type room struct {
	*testcluster.Cluster
	t       *testing.T
	ns      string
	running map[string]bool
}

// newRoom creates a namespace in which alice chats and the restorer may restore.
func newRoom(t *testing.T, c *testcluster.Cluster) *room {
	t.Helper()
	r := &room{Cluster: c, t: t, ns: c.Namespace(t, "r"), running: map[string]bool{}}
	for account, roles := range map[string][]string{
		"alice":    {"parley-chat-admin", "parley-redact"},
		"restorer": {"parley-restore", "parley-chat-admin", "parley-class-admin", "edit"},
	} {
		c.Account(t, r.ns, account)
		for _, role := range roles {
			c.Bind(t, r.ns, account, "ClusterRole", role)
		}
	}
	return r
}

// client is that of an account in the room.
func (r *room) client(account string) client.Client {
	r.t.Helper()
	c, err := client.New(as(r.Cluster, r.ns, account), client.Options{Scheme: r.Client.Scheme(),
		Mapper: r.Client.RESTMapper()})
	check.OK(r.t, err)
	return c
}

// eventually waits until the condition holds, while generation pods work.
func (r *room) eventually(what string, holds func() bool) {
	r.t.Helper()
	waiting.Until(r.t, patience, what+" in "+r.ns, func() bool {
		r.startPods()
		return holds()
	})
}

// startPods does the work of every generation pod that the manager has created.
func (r *room) startPods() {
	r.t.Helper()
	var pods corev1.PodList
	check.OK(r.t, r.Client.List(r.t.Context(), &pods, client.InNamespace(r.ns),
		client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration}))
	for i := range pods.Items {
		if name := pods.Items[i].Name; !r.running[name] {
			r.running[name] = true
			realpod.Run(r.t, as(r.Cluster, r.ns, podspec.ServiceAccount, "authentication.kubernetes.io/pod-name", name), r.ns,
				name, builtin.CurrentTime{Now: time.Now})
		}
	}
}

// kubectl runs the real kubectl as the administrator.
func (r *room) kubectl(args ...string) string {
	r.t.Helper()
	args = append([]string{"--kubeconfig", r.kubeconfig(), "--namespace", r.ns}, args...)
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		r.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, complaints.String())
	}
	return out.String()
}

func (r *room) kubeconfig() string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "kubeconfig")
	check.OK(r.t, r.WriteKubeconfig(path))
	return path
}

// chat runs kubectl chat as an account of the room.
func (r *room) chat(account string, args ...string) (out string, code int) {
	r.t.Helper()
	var streams bytes.Buffer
	code = verbs.Run(r.t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &streams, ErrOut: &streams},
		append([]string{"--kubeconfig", r.kubeconfig(), "--as", username(r.ns, account)}, args...))
	return streams.String(), code
}
