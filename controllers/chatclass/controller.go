// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatclass reconciles ChatClasses: it says in their conditions which of them is the default, and which
// ChatModelConfigs are missing that they name. What they mean for a chat, the controller of chats finds out.
package chatclass

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
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/kube/requeue"
)

// Reconciler writes the status of ChatClasses.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Now returns the current time.
	Now func() time.Time
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	// Which class is the default, or what classes name, may have changed.
	all := handler.EnqueueRequestsFromMapFunc(requeue.Siblings(r.Client, &v1beta1.ChatClassList{}, nil))
	return ctrl.NewControllerManagedBy(mgr).
		Named("chatclass").
		For(&v1beta1.ChatClass{}, changed).
		Watches(&v1beta1.ChatClass{}, all, changed).
		Watches(&v1beta1.ChatModelConfig{}, all, changed).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(r))
}

// Reconcile writes the status of one ChatClass.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var class v1beta1.ChatClass
	if err := r.Client.Get(ctx, req.NamespacedName, &class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var classes v1beta1.ChatClassList
	if err := r.Client.List(ctx, &classes, client.InNamespace(class.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing ChatClasses: %w", err)
	}
	var configs v1beta1.ChatModelConfigList
	if err := r.Client.List(ctx, &configs, client.InNamespace(class.Namespace)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing ChatModelConfigs: %w", err)
	}
	firstDefault := ""
	if first := chatclass.FirstDefault(classes.Items); first != nil {
		firstDefault = first.Name
	}
	next := class.DeepCopy()
	conditions.ChatClass(next, firstDefault,
		modelconfig.Unusable(configs.Items, chatclass.References(&class.Spec)), r.Now())
	return requeue.Status(ctx, r.Client, &class, next)
}
