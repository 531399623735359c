// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/ensure"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
)

// Access keeps what the generation pods of a namespace run with as it must be: their ServiceAccount, Role and
// RoleBinding, and the NetworkPolicy around them. The objects are applied when the namespace gets a ChatModelConfig, so
// that the first pod need not wait for them, and put right whenever they change while there is one, or a pod. A request
// names a namespace.
type Access struct {
	// Client reads from the cache and writes.
	Client client.Client
	// GatewayNamespace is the namespace of the gateways that may reach relays.
	GatewayNamespace string
}

// preparedAtOnce is how many namespaces are prepared at the same time. The API server may wait 100 ms for each of the
// lists that tell it whether the manager may grant the Role: that takes time, and hardly any work.
const preparedAtOnce = 4

// SetupWithManager registers the controller and its watches: the objects, and new pods and ChatModelConfigs, of which a
// process that begins finds all.
func (a *Access) SetupWithManager(mgr ctrl.Manager) error {
	namespace := handler.EnqueueRequestsFromMapFunc(namespaceOf)
	return ctrl.NewControllerManagedBy(mgr).
		Named("generationaccess").
		Watches(&corev1.Pod{}, namespace, builder.WithPredicates(requeue.Listed())).
		Watches(&v1beta1.ChatModelConfig{}, namespace, builder.WithPredicates(requeue.Listed())).
		Watches(&corev1.ServiceAccount{}, namespace).
		Watches(&rbacv1.Role{}, namespace).
		Watches(&rbacv1.RoleBinding{}, namespace).
		Watches(&networkingv1.NetworkPolicy{}, namespace).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter(), MaxConcurrentReconciles: preparedAtOnce}).
		Complete(requeue.IgnoreGone(a))
}

func namespaceOf(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
}

// Reconcile puts the namespace's objects right as long as it has pods, or may come to have some.
// A namespace that is being deleted takes them along.
func (a *Access) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	needed, err := a.needed(ctx, req.Name)
	if err != nil || !needed {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, a.Ensure(ctx, req.Name)
}

// needed reports whether the namespace has generation pods, or a ChatModelConfig for which it may come to have some.
func (a *Access) needed(ctx context.Context, namespace string) (bool, error) {
	var configs v1beta1.ChatModelConfigList
	if err := a.Client.List(ctx, &configs, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return false, fmt.Errorf("listing ChatModelConfigs: %w", err)
	}
	var pods corev1.PodList
	err := a.Client.List(ctx, &pods, client.InNamespace(namespace),
		client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration}, client.Limit(1))
	if err != nil {
		return false, fmt.Errorf("listing generation pods: %w", err)
	}
	return len(configs.Items) > 0 || len(pods.Items) > 0, nil
}

// Ensure creates or corrects the objects. It writes nothing that is right already.
func (a *Access) Ensure(ctx context.Context, namespace string) error {
	for _, want := range []client.Object{
		podspec.Account(namespace), podspec.Role(namespace), podspec.RoleBinding(namespace),
		podspec.NetworkPolicy(namespace, a.GatewayNamespace),
	} {
		if err := ensure.Object(ctx, a.Client, want); err != nil {
			return fmt.Errorf("preparing namespace %s for generation pods: %w", namespace, err)
		}
	}
	return nil
}
