// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// CreateClusterRoles creates the ClusterRoles of a file.
func (c *Cluster) CreateClusterRoles(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return err
		}
		if role.Kind != "ClusterRole" {
			continue
		}
		if err := c.Client.Create(ctx, &role); err != nil {
			return err
		}
	}
	return nil
}

// Account creates a service account, or fails the test.
func (c *Cluster) Account(t testing.TB, namespace, name string) {
	t.Helper()
	c.Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// Bind binds an account to a Role or ClusterRole in its namespace, or fails the test. The binding is returned.
func (c *Cluster) Bind(t testing.TB, namespace, account, kind, role string) *rbacv1.RoleBinding {
	t.Helper()
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account + "-" + role},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}}}
	c.Create(t, binding)
	return binding
}

// Token returns a token of a service account for the audiences, or fails the test. Without audiences it is for the API
// server.
func (c *Cluster) Token(t testing.TB, namespace, account string, audiences ...string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	if err := c.Client.SubResource("token").Create(t.Context(), owner, request); err != nil {
		t.Fatalf("creating a token of %s: %v", account, err)
	}
	return request.Status.Token
}
