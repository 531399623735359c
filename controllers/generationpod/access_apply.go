// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/internal/podspec"
)

// fieldOwner is who owns the fields that are applied.
const fieldOwner = client.FieldOwner("parley-manager")

// Ensure creates or corrects the objects. It writes nothing that is right already.
func (a *Access) Ensure(ctx context.Context, namespace string) error {
	for _, want := range []client.Object{
		podspec.Account(namespace), podspec.Role(namespace), podspec.RoleBinding(namespace),
		podspec.NetworkPolicy(namespace, a.GatewayNamespace),
	} {
		if err := a.ensure(ctx, want); err != nil {
			return fmt.Errorf("preparing namespace %s for generation pods: %w", namespace, err)
		}
	}
	return nil
}

func (a *Access) ensure(ctx context.Context, want client.Object) error {
	there := reflect.New(reflect.TypeOf(want).Elem()).Interface().(client.Object)
	err := a.Client.Get(ctx, client.ObjectKeyFromObject(want), there)
	switch {
	case apierrors.IsNotFound(err):
		return a.apply(ctx, want)
	case err != nil:
		return fmt.Errorf("reading %T %s: %w", want, want.GetName(), err)
	case same(there, want):
		return nil
	}
	log.FromContext(ctx).Info("putting an object of generation pods right", "kind", fmt.Sprintf("%T", want), "object",
		client.ObjectKeyFromObject(want))
	if otherRole(there, want) {
		// What a RoleBinding refers to cannot be changed.
		uid := there.GetUID()
		if err := a.Client.Delete(ctx, there, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing %T %s: %w", want, want.GetName(), err)
		}
	}
	return a.apply(ctx, want)
}

// apply writes the object, whoever has written to it before.
func (a *Access) apply(ctx context.Context, want client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("encoding %T %s: %w", want, want.GetName(), err)
	}
	kind, err := a.Client.GroupVersionKindFor(want)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", want, err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if err := a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner,
		client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %T %s: %w", want, want.GetName(), err)
	}
	return nil
}

// same reports whether the object gives what is wanted, and no more.
func same(have, want client.Object) bool {
	for key, value := range want.GetLabels() {
		if have.GetLabels()[key] != value {
			return false
		}
	}
	switch h := have.(type) {
	case *corev1.ServiceAccount:
		return equality.Semantic.DeepEqual(h.AutomountServiceAccountToken, want.(*corev1.ServiceAccount).
			AutomountServiceAccountToken)
	case *rbacv1.Role:
		return equality.Semantic.DeepEqual(h.Rules, want.(*rbacv1.Role).Rules)
	case *rbacv1.RoleBinding:
		return !otherRole(have, want) && equality.Semantic.DeepEqual(h.Subjects, want.(*rbacv1.RoleBinding).Subjects)
	case *networkingv1.NetworkPolicy:
		return equality.Semantic.DeepEqual(h.Spec, want.(*networkingv1.NetworkPolicy).Spec)
	}
	return false
}

// otherRole reports whether a RoleBinding gives another role than is wanted.
func otherRole(have, want client.Object) bool {
	h, ok := have.(*rbacv1.RoleBinding)
	return ok && h.RoleRef != want.(*rbacv1.RoleBinding).RoleRef
}
