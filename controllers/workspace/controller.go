// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace reconciles Workspaces: it creates and removes their pods and claims, and writes their status. What
// becomes of one is decided by internal/workspace/life, what its pod looks like by internal/workspace/template.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// Reconciler keeps the pods and claims of workspaces as they are to be.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache, where a decision must not rest on an old view.
	Live client.Reader
	// Settings are what workspaces are made from, all but the subject, which is the namespace's.
	Settings template.Settings
	// Access keeps what the workspaces of a namespace run with.
	Access *Access
	// Sandboxes tells whether the cluster has agent-sandbox; nil: SetupWithManager finds out.
	Sandboxes AgentSandbox
	// Now returns the current time.
	Now func() time.Time
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("workspace").
		For(&v1alpha1.Workspace{}, builder.WithPredicates(changes())).
		Watches(&v1alpha1.Workspace{}, handler.EnqueueRequestsFromMapFunc(r.ofSharer), builder.WithPredicates(changes())).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(ofClaim)).
		Watches(&v1alpha1.Chat{}, handler.EnqueueRequestsFromMapFunc(ofChat), builder.WithPredicates(decides())).
		Watches(&v1alpha1.ChatClass{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.PodTemplate{}, handler.EnqueueRequestsFromMapFunc(r.ofTemplate)).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Build(requeue.IgnoreGone(r))
	if err != nil {
		return fmt.Errorf("setting up the workspace controller: %w", err)
	}
	if r.Sandboxes == nil {
		r.Sandboxes = &discovered{mapper: mgr.GetRESTMapper(), watch: func() error {
			return errors.Join(
				c.Watch(source.Kind[client.Object](mgr.GetCache(), &pools.SandboxClaim{},
					handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1alpha1.Workspace{}))),
				c.Watch(source.Kind[client.Object](mgr.GetCache(), &sandboxes.Sandbox{},
					handler.EnqueueRequestsFromMapFunc(r.ofSandbox))))
		}}
	}
	return nil
}

// Reconcile brings one workspace forward: it gathers, asks, acts and asks again, and writes one status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w v1alpha1.Workspace
	if err := r.Client.Get(ctx, req.NamespacedName, &w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	facts, objects, err := r.gather(ctx, &w)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := life.Decide(facts)
	for range maxActs {
		if plan.Act == life.Nothing {
			break
		}
		if err := r.act(ctx, plan.Act, facts, objects); err != nil {
			return ctrl.Result{}, err
		}
		plan = life.Decide(facts)
	}
	return r.report(ctx, &w, facts, plan)
}

// maxActs bounds what one pass does: a claim, its owner, a pod, and one more.
const maxActs = 4
