// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatmodelconfig reconciles ChatModelConfigs: it says in their conditions whether they can be used. Nearly all
// that one of them can be wrong about alone is refused at admission; what is left is what concerns several.
package chatmodelconfig

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/netguard/hostlist"
)

// Reconciler writes the status of ChatModelConfigs.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache, which has no ConfigMaps.
	Live client.Reader
	// ModelHosts are the hosts that models may be called at; none: all.
	ModelHosts hostlist.List
	// AllowLoopback lets models be called at loopback addresses.
	AllowLoopback bool
	// Now returns the current time.
	Now func() time.Time
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	// Which configuration is the default may have changed.
	siblings := handler.EnqueueRequestsFromMapFunc(requeue.Siblings(r.Client, &v1beta1.ChatModelConfigList{}, nil))
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("chatmodelconfig").
		For(&v1beta1.ChatModelConfig{}, changed).
		Watches(&v1beta1.ChatModelConfig{}, siblings, changed).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(r))
}

// Reconcile writes the status of one ChatModelConfig.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var config v1beta1.ChatModelConfig
	if err := r.Client.Get(ctx, req.NamespacedName, &config); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var all v1beta1.ChatModelConfigList
	if err := r.Client.List(ctx, &all, client.InNamespace(config.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing ChatModelConfigs: %w", err)
	}
	firstDefault := ""
	if first := modelconfig.FirstDefault(all.Items); first != nil {
		firstDefault = first.Name
	}
	bundle, again, err := r.caBundle(ctx, &config)
	if err != nil {
		return ctrl.Result{}, err
	}
	next := config.DeepCopy()
	conditions.ModelConfig(next, conditions.ModelConfigFacts{
		CABundle:     bundle,
		FirstDefault: firstDefault, Missing: modelconfig.Missing(all.Items, &config),
		ForbiddenHost: modelconfig.ForbiddenHost(&config.Spec, r.ModelHosts, r.AllowLoopback),
	}, r.Now())
	result, err := requeue.Status(ctx, r.Client, &config, next)
	if err == nil && result.IsZero() {
		result.RequeueAfter = again
	}
	return result, err
}
