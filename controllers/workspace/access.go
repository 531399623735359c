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
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/internal/kube/ensure"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/template"
)

// Access applies the prerequisites of the workspaces of a namespace: the NetworkPolicy around them, and the issuer,
// public keys and users by which their agents verify tokens. It applies them before a pod is created, when there is a
// pod that Parley has not created, and, while there is a pod, every hour and when the issuer has other keys. It is safe
// for concurrent use.
type Access struct {
	Client client.Client
	// Issuer of the cluster's service-account tokens.
	Issuer string
	// Keys fetches the public keys of the cluster's issuer, a JWKS.
	Keys func(ctx context.Context) ([]byte, error)
	// GatewayNamespace is that of the gateways that may reach agents, and Viewers are their users.
	GatewayNamespace string
	Viewers          []string
	Now              func() time.Time

	mu      sync.Mutex
	known   keySet            // as it was fetched last
	applied map[string]keySet // by namespace
}

// keySet is the keys of the issuer, and when they were fetched or applied.
type keySet struct {
	at   time.Time
	keys string
}

const (
	// renewal is how often the objects are applied without an event: someone may have changed or deleted them.
	renewal = time.Hour
	// keysAge is how old the known keys of the issuer may be. Agents refuse all tokens that are signed with a newer one.
	keysAge = time.Minute
)

// Ensure applies the objects.
func (a *Access) Ensure(ctx context.Context, namespace string) error {
	keys, err := a.issuerKeys(ctx)
	if err != nil {
		return err
	}
	for _, want := range []client.Object{
		template.NetworkPolicy(namespace, a.GatewayNamespace),
		template.IssuerConfigMap(namespace, a.Issuer, []byte(keys), a.Viewers),
	} {
		if err := ensure.Apply(ctx, a.Client, want); err != nil {
			return fmt.Errorf("preparing namespace %s for workspaces: %w", namespace, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied == nil {
		a.applied = map[string]keySet{}
	}
	a.applied[namespace] = keySet{a.Now(), keys}
	return nil
}

// issuerKeys returns the keys of the issuer, which are fetched once a minute for all namespaces.
func (a *Access) issuerKeys(ctx context.Context) (string, error) {
	a.mu.Lock()
	known := a.known
	a.mu.Unlock()
	if known.keys != "" && a.Now().Sub(known.at) < keysAge {
		return known.keys, nil
	}
	keys, err := a.Keys(ctx)
	if err != nil {
		return "", fmt.Errorf("fetching the keys of the issuer of service-account tokens: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known = keySet{a.Now(), string(keys)}
	return a.known.keys, nil
}

// SetupWithManager registers the controller that applies the objects where there are pods of workspaces.
func (a *Access) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("workspaceaccess").
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(
			func(_ context.Context, o client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
			}), builder.WithPredicates(predicate.NewPredicateFuncs(isWorkspacePod))).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(a))
	if err != nil {
		return fmt.Errorf("setting up the controller of the prerequisites of workspaces: %w", err)
	}
	return nil
}

func isWorkspacePod(o client.Object) bool {
	return o.GetLabels()[podspec.LabelComponent] == podspec.ComponentWorkspace
}

// Reconcile applies the objects in a namespace with pods if the last time is long ago, or the issuer has other keys.
func (a *Access) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pods corev1.PodList
	err := a.Client.List(ctx, &pods, client.InNamespace(req.Name), client.Limit(1),
		client.MatchingLabels{podspec.LabelComponent: podspec.ComponentWorkspace})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("listing the pods of workspaces of namespace %s: %w", req.Name, err)
	}
	if len(pods.Items) == 0 {
		return ctrl.Result{}, nil
	}
	keys, err := a.issuerKeys(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	a.mu.Lock()
	last := a.applied[req.Name]
	a.mu.Unlock()
	if a.Now().Sub(last.at) >= renewal || last.keys != keys {
		err = a.Ensure(ctx, req.Name)
	}
	return ctrl.Result{RequeueAfter: keysAge}, err
}
