// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ensure creates and corrects objects by server-side apply.
package ensure

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
)

// fieldOwner is who owns the fields that are applied.
const fieldOwner = client.FieldOwner("parley-manager")

// Object creates or corrects the object. It writes nothing that is right already.
func Object(ctx context.Context, c client.Client, want client.Object) error {
	there := reflect.New(reflect.TypeOf(want).Elem()).Interface().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(want), there)
	switch {
	case apierrors.IsNotFound(err):
		return Apply(ctx, c, want)
	case err != nil:
		return fmt.Errorf("reading %T %s: %w", want, want.GetName(), err)
	case isEqual(there, want):
		return nil
	}
	log.FromContext(ctx).Info("Putting an object right", "kind", fmt.Sprintf("%T", want), "object",
		client.ObjectKeyFromObject(want))
	if hasOtherRole(there, want) {
		// What a RoleBinding refers to cannot be changed.
		uid := there.GetUID()
		if err := c.Delete(ctx, there, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing %T %s: %w", want, want.GetName(), err)
		}
	}
	return Apply(ctx, c, want)
}

// Apply writes the object, whoever has written to it before.
func Apply(ctx context.Context, c client.Client, want client.Object) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("encoding %T %s: %w", want, want.GetName(), err)
	}
	kind, err := c.GroupVersionKindFor(want)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", want, err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), fieldOwner,
		client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %T %s: %w", want, want.GetName(), err)
	}
	return nil
}

// isEqual reports whether the object grants the same as the wanted one.
func isEqual(have, want client.Object) bool {
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
		return !hasOtherRole(have, want) && equality.Semantic.DeepEqual(h.Subjects, want.(*rbacv1.RoleBinding).Subjects)
	case *networkingv1.NetworkPolicy:
		return equality.Semantic.DeepEqual(h.Spec, want.(*networkingv1.NetworkPolicy).Spec)
	}
	return false
}

// hasOtherRole reports whether a RoleBinding refers to another role.
func hasOtherRole(have, want client.Object) bool {
	h, ok := have.(*rbacv1.RoleBinding)
	return ok && h.RoleRef != want.(*rbacv1.RoleBinding).RoleRef
}
