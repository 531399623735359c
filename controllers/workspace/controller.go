// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace reconciles Workspaces: it creates and removes their pods and claims, and writes their status.
// internal/workspace/life makes the decisions, and internal/workspace/template renders the pods.
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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// Reconciler reconciles Workspaces.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Settings of all workspaces. The subject follows from the namespace.
	Settings template.Settings
	Access   *Access
	// Sandboxes; nil: SetupWithManager discovers whether the cluster has agent-sandbox.
	Sandboxes AgentSandbox
	Now       func() time.Time
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("workspace").
		For(&v1beta1.Workspace{}, builder.WithPredicates(changes())).
		Watches(&v1beta1.Workspace{}, handler.EnqueueRequestsFromMapFunc(r.ofSharer), builder.WithPredicates(changes())).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(ofClaim)).
		Watches(&v1beta1.Chat{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(chatChanges())).
		Watches(&v1beta1.ChatClass{}, handler.EnqueueRequestsFromMapFunc(r.ofClass),
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
					handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &v1beta1.Workspace{}))),
				c.Watch(source.Kind[client.Object](mgr.GetCache(), &sandboxes.Sandbox{},
					handler.EnqueueRequestsFromMapFunc(r.ofSandbox))))
		}}
	}
	return nil
}

// Reconcile gathers the facts about one workspace, acts on decisions, and writes one status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w v1beta1.Workspace
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
		if result, err := r.perform(ctx, plan, facts, objects); err != nil || result.RequeueAfter > 0 {
			return result, err
		}
		plan = life.Decide(facts)
	}
	result, err := r.report(ctx, facts, plan)
	if err != nil || result.RequeueAfter > 0 {
		return result, err
	}
	return ctrl.Result{RequeueAfter: plan.Deadline()}, nil
}

// maxActs bounds the acts of one pass: a claim, its owner, a pod, and one more.
const maxActs = 4

// perform performs the act of the plan. Before one that stops the workspace, it writes the status: a chat that has
// renewed neededAt since the workspace was read may have calls running, and then that write conflicts.
func (r *Reconciler) perform(ctx context.Context, p life.Plan, f *life.Facts, o *template.Objects) (ctrl.Result,
	error) {
	if p.Phase == v1beta1.WorkspacePhaseStopping && f.Workspace.Status.Phase != p.Phase {
		if result, err := r.report(ctx, f, p); err != nil || result.RequeueAfter > 0 {
			return result, err
		}
	}
	return ctrl.Result{}, r.act(ctx, p.Act, f, o)
}

// report writes the status if it has changed, also to the facts. After a conflict, the result says when to reconcile
// again.
func (r *Reconciler) report(ctx context.Context, f *life.Facts, p life.Plan) (ctrl.Result, error) {
	w := f.Workspace
	next := w.DeepCopy()
	next.Status.Phase = p.Phase
	next.Status.Pod, next.Status.Claim, next.Status.Directory, next.Status.Template = nil, "", "", ""
	next.Status.Sandbox = ""
	if f.Pool != nil && f.Pool.Sandbox != nil {
		next.Status.Sandbox = f.Pool.Sandbox.Name
	}
	if f.OwnsClaim() {
		next.Status.Claim = f.Claim.Name
	}
	if f.Copied() {
		next.Status.CopiedFrom = w.Spec.CopyFrom
	}
	if pod := f.Pod; f.NamesPod() {
		next.Status.Pod = &v1beta1.WorkspacePod{Name: pod.Name, UID: string(pod.UID), Address: pod.Status.PodIP}
		next.Status.Directory = template.DirectoryIn(pod)
		next.Status.Template = pod.Annotations[annotationTemplate]
	}
	conditions.Workspace(next, p.Summary, r.Now())
	result, err := requeue.Status(ctx, r.Client, w, next)
	if err == nil && result.RequeueAfter == 0 {
		*w = *next
	}
	return result, err
}
