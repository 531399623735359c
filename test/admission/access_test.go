// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/controllers/generationpod"
	"parley.dev/parley/internal/pods/podspec"
)

func TestManagersRightsSufficeForAccess(t *testing.T) {
	t.Parallel()
	namespace := "access-" + rand.String(6)
	cluster.Create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	c := as(t, manager)
	access := &generationpod.Access{Client: c, GatewayNamespace: "parley-system"}
	other := podspec.RoleBinding(namespace)
	other.RoleRef.Name = "another"
	cluster.Create(t, other)
	for range 2 {
		if err := access.Ensure(t.Context(), namespace); err != nil {
			t.Fatal(err)
		}
		role := podspec.Role(namespace)
		role.Rules = role.Rules[:1]
		if err := cluster.Client.Update(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
	named := client.MatchingFields{"metadata.name": podspec.ServiceAccount}
	for _, list := range []client.ObjectList{&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&networkingv1.NetworkPolicyList{}} {
		if err := c.List(t.Context(), list, named); err != nil {
			t.Errorf("listing those of generation pods: %v", err)
		}
		if err := c.List(t.Context(), list); err == nil {
			t.Errorf("the manager lists every %T of the cluster", list)
		}
	}
}
