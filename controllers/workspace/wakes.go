// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/workspace/template"
)

// ofClaim is the workspace of a claim.
func ofClaim(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetAnnotations()[annotationName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// changes are the changes of a workspace that requeue it. A written status is one: a pass with the current pod and the
// status before the last write may have found no difference to write.
func changes() predicate.Predicate {
	written := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1beta1.Workspace)
		after, too := e.ObjectNew.(*v1beta1.Workspace)
		return ok && too && !equality.Semantic.DeepEqual(before.Status, after.Status)
	}}
	return predicate.Or(predicate.GenerationChangedPredicate{}, written)
}

// chatChanges are the changes of a chat that requeue its workspace: its model stops it, or the deletion policy or the
// class changes.
func chatChanges() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // Each workspace is reconciled when the manager starts.
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1beta1.Chat)
			after, too := e.ObjectNew.(*v1beta1.Chat)
			return ok && too && (!after.WorkspaceStoppedAt().Equal(before.WorkspaceStoppedAt()) ||
				deletionPolicy(after) != deletionPolicy(before) || after.Spec.ChatClassName != before.Spec.ChatClassName)
		},
	}
}

func deletionPolicy(chat *v1beta1.Chat) v1beta1.WorkspaceDeletionPolicy {
	if chat.Spec.Workspace == nil {
		return ""
	}
	return chat.Spec.Workspace.DeletionPolicy
}

// ofClass are all workspaces of the namespace of a class, which may have their deletion policy.
func (r *Reconciler) ofClass(ctx context.Context, o client.Object) []reconcile.Request {
	return r.list(ctx, o.GetNamespace(), func(*v1beta1.Workspace) bool { return true })
}

// ofTemplate are the workspaces that wait for a template.
func (r *Reconciler) ofTemplate(ctx context.Context, o client.Object) []reconcile.Request {
	return r.list(ctx, o.GetNamespace(), func(w *v1beta1.Workspace) bool {
		ref := w.Spec.Source.PodTemplateRef
		return ref != nil && ref.Name == o.GetName() && w.Status.Pod == nil
	})
}

// ofPod are the workspaces whose podRef names the pod, or whose sandbox has it.
func (r *Reconciler) ofPod(ctx context.Context, o client.Object) []reconcile.Request {
	if !isWorkspacePod(o) {
		return nil
	}
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "Sandbox" {
		var sandbox sandboxes.Sandbox
		key := client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}
		if installed, err := r.Sandboxes.Installed(); err != nil || !installed || r.Client.Get(ctx, key, &sandbox) != nil {
			return nil // Its status has an event, too.
		}
		return r.ofSandbox(ctx, &sandbox)
	}
	return r.ofPodName(ctx, o.GetNamespace(), o.GetName())
}

// ofSharer are the workspaces whose podRef names the same pod as a workspace, which may have released or taken it.
func (r *Reconciler) ofSharer(ctx context.Context, o client.Object) []reconcile.Request {
	w, ok := o.(*v1beta1.Workspace)
	if !ok || w.Spec.Source.PodRef == nil {
		return nil
	}
	return r.ofPodName(ctx, w.Namespace, w.Spec.Source.PodRef.Name)
}

func (r *Reconciler) ofPodName(ctx context.Context, namespace, pod string) []reconcile.Request {
	isNamed := func(w *v1beta1.Workspace) bool { return w.Spec.Source.PodRef != nil }
	return r.list(ctx, namespace, isNamed, client.MatchingFields{index.WorkspacesByPod: pod})
}

// ofSandbox is the workspace of the sandbox's claim.
func (r *Reconciler) ofSandbox(ctx context.Context, o client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != "SandboxClaim" {
		return nil // It is in the pool.
	}
	return r.list(ctx, o.GetNamespace(), func(w *v1beta1.Workspace) bool {
		return w.Spec.Source.WarmPoolRef != nil && template.Name(w) == owner.Name
	})
}

// list returns requests for the workspaces of a namespace that are selected.
func (r *Reconciler) list(ctx context.Context, namespace string, isSelected func(*v1beta1.Workspace) bool,
	opts ...client.ListOption) (requests []reconcile.Request) {
	var list v1beta1.WorkspaceList
	if !requeue.List(ctx, r.Client, &list, append(opts, client.InNamespace(namespace))...) {
		return nil
	}
	for i := range list.Items {
		if isSelected(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
