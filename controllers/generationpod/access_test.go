// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

var ofNamespace = ctrl.Request{NamespacedName: types.NamespacedName{Name: "ns"}}

// accesses are the objects that a namespace's generation pods run with.
func accesses() []client.ObjectList {
	return []client.ObjectList{&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&networkingv1.NetworkPolicyList{}}
}

func beginAccess(t *testing.T, objects ...client.Object) (*fakeapi.Server, *Access) {
	t.Helper()
	s := fakeapi.New(t, objects...)
	return s, &Access{Client: s.Client, GatewayNamespace: "parley-system"}
}

// right are the objects as they must be.
func right(t *testing.T) map[string]string {
	t.Helper()
	s, a := beginAccess(t, working())
	if _, err := a.Reconcile(t.Context(), ofNamespace); err != nil {
		t.Fatal(err)
	}
	return s.State(t, accesses()...)
}

func TestAccessIsAppliedOnlyWhenItDiffers(t *testing.T) {
	want := right(t)
	if len(want) != 4 {
		t.Fatalf("they are %v", want)
	}
	role, binding, policy := podspec.Role("ns"), podspec.RoleBinding("ns"), podspec.NetworkPolicy("ns", "parley-system")
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"},
		Verbs: []string{"get"}})
	binding.RoleRef.Name = "cluster-admin"
	policy.Spec.Egress = nil
	for name, c := range map[string]struct {
		there  []client.Object
		writes []string
	}{
		"none is there": {nil, []string{"apply serviceaccount", "apply role", "apply rolebinding",
			"apply networkpolicy"}},
		"a Role that gives more": {[]client.Object{podspec.Account("ns"), role, podspec.RoleBinding("ns"),
			podspec.NetworkPolicy("ns", "parley-system")}, []string{"apply role"}},
		"a RoleBinding that gives another Role": {[]client.Object{podspec.Account("ns"), podspec.Role("ns"), binding,
			podspec.NetworkPolicy("ns", "parley-system")}, []string{"delete rolebinding", "apply rolebinding"}},
		"a NetworkPolicy that lets more out": {[]client.Object{podspec.Account("ns"), podspec.Role("ns"),
			podspec.RoleBinding("ns"), policy}, []string{"apply networkpolicy"}},
		"all are right": {[]client.Object{podspec.Account("ns"), podspec.Role("ns"), podspec.RoleBinding("ns"),
			podspec.NetworkPolicy("ns", "parley-system")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := beginAccess(t, append(c.there, working())...)
			if result, err := a.Reconcile(t.Context(), ofNamespace); err != nil || !result.IsZero() {
				t.Errorf("got %v, %v", result, err)
			}
			if !slices.Equal(s.Writes(), c.writes) {
				t.Errorf("it writes %v, want %v", s.Writes(), c.writes)
			}
			if _, err := a.Reconcile(t.Context(), ofNamespace); err != nil || len(s.Writes()) != len(c.writes) {
				t.Errorf("what is right is written again: %v, %v", s.Writes(), err)
			}
		})
	}
}

func TestANamespaceWithoutPodsAndModelsGetsNothing(t *testing.T) {
	other := working(func(p *corev1.Pod) { p.Labels = nil })
	s, a := beginAccess(t, other)
	if _, err := a.Reconcile(t.Context(), ofNamespace); err != nil || len(s.Writes()) != 0 {
		t.Errorf("it writes %v, %v", s.Writes(), err)
	}
}

func TestTheyAreThereBeforeTheFirstPod(t *testing.T) {
	s, a := beginAccess(t, chattest.In("ns", chattest.Config("default")))
	if _, err := a.Reconcile(t.Context(), ofNamespace); err != nil || len(s.Writes()) != 4 {
		t.Errorf("it writes %v, %v", s.Writes(), err)
	}
}

func TestANamespaceThatGoesTakesThemAlong(t *testing.T) {
	terminating := apierrors.NewForbidden(corev1.Resource("serviceaccounts"), "a", nil)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, answer := range map[string]error{
		"being deleted": terminating, "gone": apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"),
	} {
		t.Run(name, func(t *testing.T) {
			s, a := beginAccess(t, working())
			s.Fail = func(call string) error {
				if slices.Contains(s.Writes(), call) {
					return answer
				}
				return nil
			}
			if result, err := requeue.IgnoreGone(a).Reconcile(t.Context(), ofNamespace); err != nil || !result.IsZero() {
				t.Errorf("got %v, %v", result, err)
			}
			if err := a.Ensure(t.Context(), "ns"); err == nil {
				t.Error("a pod that is to be created is not told")
			}
		})
	}
}

func TestFaultOfAnyCallLeavesAccessRight(t *testing.T) {
	binding := podspec.RoleBinding("ns")
	binding.RoleRef.Name = "cluster-admin"
	for name, there := range map[string][]client.Object{
		"none is there": nil,
		"one is replaced": {podspec.Account("ns"), podspec.Role("ns"), binding,
			podspec.NetworkPolicy("ns", "parley-system")},
	} {
		t.Run(name, func(t *testing.T) {
			faults := fakeapi.Reconcile{
				Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
					objects := []client.Object{working()}
					for _, o := range there {
						objects = append(objects, o.DeepCopyObject().(client.Object))
					}
					return beginAccess(t, objects...)
				},
				Request: ofNamespace, State: accesses(),
			}
			faults.Run(t)
		})
	}
}
