// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboards shows what dashboards make of Parley: Argo CD's menus, kube-state-metrics and Grafana. What is in
// config/ for them runs in their own libraries where these can be had, against objects that a real kube-apiserver has
// admitted, with Parley's admission policies in force.
package dashboards

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/test/kit/testcluster"
)

const (
	// manager is who writes statuses.
	manager = "system:serviceaccount:parley-system:parley-manager"
	// argocd is the account with which Argo CD's server carries actions out.
	argocd = "system:serviceaccount:argocd:argocd-server"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testcluster.Run(m, &cluster, install, allowActions))
}

// install installs Parley as it is installed anywhere.
func install(ctx context.Context) (end func(), err error) {
	return nil, cluster.Install(ctx, testcluster.Path("config", "default"))
}

// allowActions gives Argo CD's account the rights that docs/how-to/dashboards.md says it needs, and no others.
func allowActions(ctx context.Context) (end func(), err error) {
	meta := metav1.ObjectMeta{Name: "argocd-actions"}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"parley.dev"},
			Resources: []string{"chats", "chatmessages", "workspaces"}, Verbs: []string{"get", "patch"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta,
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: argocd}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}},
	} {
		if err := cluster.Client.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("creating %T: %w", o, err)
		}
	}
	return nil, nil
}

// as is a client of somebody else.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(cfg, client.Options{Scheme: cluster.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// parse reads YAML as an API server would, with whole numbers as such.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(raw, &content); err != nil {
		t.Fatal(err)
	}
	return content
}
