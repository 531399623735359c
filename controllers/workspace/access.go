// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/internal/kube/ensure"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/template"
)

// Access keeps what the workspaces of a namespace run with as it must be: the NetworkPolicy around them, and the issuer
// and public keys by which their agents tell who calls. Both are applied before a pod is created, when there is a pod
// that somebody else created, and every hour as long as there is one.
// It is safe for concurrent use.
type Access struct {
	// Client reads and writes.
	Client client.Client
	// Issuer of the cluster's service-account tokens.
	Issuer string
	// Keys fetches the public keys of the cluster's issuer, a JWKS.
	Keys func(ctx context.Context) ([]byte, error)
	// Now returns the current time.
	Now func() time.Time

	mu      sync.Mutex
	applied map[string]time.Time // by namespace
}

// renewal is how often the objects are applied although nothing has happened: the issuer's keys may have changed.
const renewal = time.Hour

// Ensure applies the objects.
func (a *Access) Ensure(ctx context.Context, namespace string) error {
	keys, err := a.Keys(ctx)
	if err != nil {
		return fmt.Errorf("fetching the keys of the issuer of service-account tokens: %w", err)
	}
	for _, want := range []client.Object{
		template.NetworkPolicy(namespace), template.IssuerConfigMap(namespace, a.Issuer, keys),
	} {
		if err := ensure.Apply(ctx, a.Client, want); err != nil {
			return fmt.Errorf("preparing namespace %s for workspaces: %w", namespace, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied == nil {
		a.applied = map[string]time.Time{}
	}
	a.applied[namespace] = a.Now()
	return nil
}

// SetupWithManager registers the controller that applies the objects where there are pods of workspaces.
func (a *Access) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("workspaceaccess").
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(
			func(_ context.Context, o client.Object) []reconcile.Request {
				if o.GetLabels()[podspec.LabelComponent] != podspec.ComponentWorkspace {
					return nil
				}
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
			})).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(a))
	if err != nil {
		return fmt.Errorf("setting up the controller of what workspaces run with: %w", err)
	}
	return nil
}

// Reconcile applies the objects in the namespace of that name where there are pods and it was done long ago.
func (a *Access) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pods corev1.PodList
	err := a.Client.List(ctx, &pods, client.InNamespace(req.Name), client.Limit(1),
		client.MatchingLabels{podspec.LabelComponent: podspec.ComponentWorkspace})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the pods of workspaces of namespace %s: %w", req.Name, err)
	}
	a.mu.Lock()
	age := a.Now().Sub(a.applied[req.Name])
	a.mu.Unlock()
	switch {
	case len(pods.Items) == 0:
		return ctrl.Result{}, nil
	case age < renewal:
		return ctrl.Result{RequeueAfter: renewal - age}, nil
	}
	return ctrl.Result{RequeueAfter: renewal}, a.Ensure(ctx, req.Name)
}
