// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
)

// ofPods reads an object that generation pods run with; false if there is none.
func ofPods(t *testing.T, ns string, into client.Object) bool {
	t.Helper()
	return cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: podspec.ServiceAccount}, into) == nil
}

// isRight reports whether the namespace's objects are as they must be.
func isRight(t *testing.T, ns string) bool {
	t.Helper()
	var account corev1.ServiceAccount
	var role rbacv1.Role
	var binding rbacv1.RoleBinding
	var policy networkingv1.NetworkPolicy
	for _, o := range []client.Object{&account, &role, &binding, &policy} {
		if !ofPods(t, ns, o) {
			return false
		}
	}
	return account.AutomountServiceAccountToken != nil && !*account.AutomountServiceAccountToken &&
		equality.Semantic.DeepEqual(role.Rules, podspec.Role(ns).Rules) && binding.RoleRef == podspec.RoleBinding(ns).
		RoleRef &&
		equality.Semantic.DeepEqual(binding.Subjects, podspec.RoleBinding(ns).Subjects) &&
		equality.Semantic.DeepEqual(policy.Spec, podspec.NetworkPolicy(ns, "").Spec)
}

func TestAccessIsCorrectedWhileAPodIsWarm(t *testing.T) {
	ns := parallel(t)
	started(t, ns, "c", "hello")
	named := metav1.ObjectMeta{Namespace: ns, Name: podspec.ServiceAccount}
	account, role := &corev1.ServiceAccount{ObjectMeta: named}, &rbacv1.Role{ObjectMeta: named}
	binding, policy := &rbacv1.RoleBinding{ObjectMeta: named}, &networkingv1.NetworkPolicy{ObjectMeta: named}
	for _, c := range []struct {
		name    string
		disturb func()
	}{
		{"the ServiceAccount is deleted", func() { remove(t, account) }},
		{"the Role is deleted", func() { remove(t, role) }},
		{"the RoleBinding is deleted", func() { remove(t, binding) }},
		{"the NetworkPolicy is deleted", func() { remove(t, policy) }},
		{"Role and RoleBinding are deleted", func() { remove(t, role); remove(t, binding) }},
		{"the account mounts tokens", func() { patch(t, account, `{"automountServiceAccountToken":true}`) }},
		{"the Role gives Secrets",
			func() { patch(t, role, `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`) }},
		{"the RoleBinding is for another one", func() {
			patch(t, binding, `{"subjects":[{"kind":"ServiceAccount","name":"default","namespace":%q}]}`, ns)
		}},
		{"the RoleBinding is for one more", func() {
			patch(t, binding,
				`{"subjects":[{"kind":"ServiceAccount","name":"parley-generation","namespace":%q},{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]}`, ns)
		}},
		{"the RoleBinding gives another role", func() {
			other := podspec.RoleBinding(ns)
			other.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
			remove(t, binding)
			_ = cluster.Client.Create(t.Context(), other) // The right one may be there already.
		}},
		{"the NetworkPolicy lets everybody in", func() { patch(t, policy, `{"spec":{"ingress":[{}]}}`) }},
		{"the labels are gone", func() { patch(t, policy, `{"metadata":{"labels":null},"spec":{"ingress":[]}}`) }},
	} {
		c.disturb()
		eventually(t, c.name+": it is put right", func() bool { return isRight(t, ns) })
	}
}

func TestRoleBindingToAnotherRoleIsReplaced(t *testing.T) {
	ns := parallel(t)
	other := podspec.RoleBinding(ns)
	other.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
	create(t, other)
	started(t, ns, "c", "hello")
	eventually(t, "it is put right", func() bool { return isRight(t, ns) })
}

func TestOutdatedNetworkPolicyIsUpdatedOnce(t *testing.T) {
	ns := namespace(t)
	old := podspec.NetworkPolicy(ns, "")
	old.Spec.Ingress = old.Spec.Ingress[:1] // Nobody could read the metrics.
	create(t, old)
	started(t, ns, "c", "hello")
	var corrected, later networkingv1.NetworkPolicy
	if !ofPods(t, ns, &corrected) || len(corrected.Spec.Ingress) != 2 || len(corrected.Spec.Ingress[1].Ports) != 2 {
		t.Fatalf("the policy lets in %+v", corrected.Spec.Ingress)
	}
	stopManager(t)()
	create(t, say(ns, "c", "second"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	assigned(t, ns, "c", 3, 1)
	if !ofPods(t, ns, &later) || later.ResourceVersion != corrected.ResourceVersion {
		t.Error("a policy that is right is written again")
	}
}

func TestNewManagerCorrectsDeletedAccess(t *testing.T) {
	ns := namespace(t)
	started(t, ns, "c", "hello")
	restart := stopManager(t)
	remove(t, podspec.Role(ns))
	remove(t, podspec.RoleBinding(ns))
	restart()
	eventually(t, "it is put right", func() bool { return isRight(t, ns) })
}
