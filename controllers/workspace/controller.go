// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace reconciles Workspaces: it creates and removes their pods and claims, and writes their status. What
// becomes of one is decided by internal/workspace/life, what its pod looks like by internal/workspace/template.
package workspace

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/requeue"
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
	// Now tells the time.
	Now func() time.Time
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("workspace").
		For(&v1alpha1.Workspace{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.Pod{}).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(ofClaim)).
		Watches(&v1alpha1.Chat{}, handler.EnqueueRequestsFromMapFunc(ofChat), builder.WithPredicates(stops())).
		Watches(&corev1.PodTemplate{}, handler.EnqueueRequestsFromMapFunc(r.ofTemplate)).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the workspace controller: %w", err)
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
	result, err := r.report(ctx, &w, facts, plan)
	if err != nil || plan.Phase != v1alpha1.WorkspacePhaseReady {
		return result, err
	}
	return result, r.Access.Refresh(ctx, w.Namespace) // After the status, which must not wait for it.
}

// maxActs bounds what one pass does: a claim, a pod, and one more.
const maxActs = 3

// ofClaim is the workspace that a claim belongs to.
func ofClaim(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[annotationName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// ofChat is the workspace of a chat, which has its name.
func ofChat(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}

// stops are the events by which the model of a chat stops its workspace.
func stops() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // Each workspace is looked at when the manager starts.
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.Chat)
			after, too := e.ObjectNew.(*v1alpha1.Chat)
			return ok && too && !after.WorkspaceStoppedAt().Equal(before.WorkspaceStoppedAt())
		},
	}
}

// ofTemplate are the namespace's workspaces that are made from the template and wait for one.
func (r *Reconciler) ofTemplate(ctx context.Context, o client.Object) []reconcile.Request {
	var all v1alpha1.WorkspaceList
	if !requeue.List(ctx, r.Client, &all, client.InNamespace(o.GetNamespace())) {
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		ref := all.Items[i].Spec.Source.PodTemplateRef
		if ref != nil && ref.Name == o.GetName() && all.Items[i].Status.Pod == nil {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}
