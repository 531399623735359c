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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/template"
)

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

// changes are those of a workspace that a decision may follow from. Its own status is among them: a pass that saw the
// pod as it is and the status as it was before the last write took the two to agree, and wrote nothing.
func changes() predicate.Predicate {
	written := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Workspace)
		after, too := e.ObjectNew.(*v1alpha1.Workspace)
		return ok && too && !equality.Semantic.DeepEqual(before.Status, after.Status)
	}}
	return predicate.Or(predicate.GenerationChangedPredicate{}, written)
}

// decides are the events by which the model of a chat stops its workspace, or people say whether its storage is kept:
// the chat does, or the class that it names.
func decides() predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // Each workspace is looked at when the manager starts.
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.Chat)
			after, too := e.ObjectNew.(*v1alpha1.Chat)
			return ok && too && (!after.WorkspaceStoppedAt().Equal(before.WorkspaceStoppedAt()) ||
				deletionPolicy(after) != deletionPolicy(before) || after.Spec.ChatClassName != before.Spec.ChatClassName)
		},
	}
}

func deletionPolicy(chat *v1alpha1.Chat) v1alpha1.WorkspaceDeletionPolicy {
	if chat.Spec.Workspace == nil {
		return ""
	}
	return chat.Spec.Workspace.DeletionPolicy
}

// ofNamespace are the namespace's workspaces: their chats may have a class that says whether their storage is kept.
func (r *Reconciler) ofNamespace(ctx context.Context, o client.Object) []reconcile.Request {
	return those(ctx, r.Client, o.GetNamespace(), all)
}

// ofTemplate are the namespace's workspaces that are made from the template and wait for one.
func (r *Reconciler) ofTemplate(ctx context.Context, o client.Object) []reconcile.Request {
	return those(ctx, r.Client, o.GetNamespace(), func(w *v1alpha1.Workspace) bool {
		ref := w.Spec.Source.PodTemplateRef
		return ref != nil && ref.Name == o.GetName() && w.Status.Pod == nil
	})
}

// ofPod are the workspaces whose podRef names the pod, or whose sandbox has it.
func (r *Reconciler) ofPod(ctx context.Context, o client.Object) []reconcile.Request {
	if o.GetLabels()[podspec.LabelComponent] != podspec.ComponentWorkspace {
		return nil
	}
	if owner := metav1.GetControllerOf(o); owner != nil && owner.Kind == "Sandbox" {
		var sandbox sandboxes.Sandbox
		key := client.ObjectKey{Namespace: o.GetNamespace(), Name: owner.Name}
		if installed, err := r.Sandboxes.Installed(); err != nil || !installed || r.Client.Get(ctx, key, &sandbox) != nil {
			return nil // It says when its pod is ready.
		}
		return r.ofSandbox(ctx, &sandbox)
	}
	return ofName(ctx, r.Client, o.GetNamespace(), o.GetName())
}

// ofSharer are the workspaces whose podRef names the same pod as that of a workspace: which of them has it may have
// changed.
func (r *Reconciler) ofSharer(ctx context.Context, o client.Object) []reconcile.Request {
	w, ok := o.(*v1alpha1.Workspace)
	if !ok || w.Spec.Source.PodRef == nil {
		return nil
	}
	return ofName(ctx, r.Client, w.Namespace, w.Spec.Source.PodRef.Name)
}

// ofName are the workspaces whose podRef names a pod.
func ofName(ctx context.Context, c client.Reader, namespace, pod string) []reconcile.Request {
	return those(ctx, c, namespace, all, client.MatchingFields{index.WorkspacesByPod: pod})
}

// ofSandbox is the workspace whose claim has the sandbox.
func (r *Reconciler) ofSandbox(ctx context.Context, o client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != "SandboxClaim" {
		return nil // It is in the pool.
	}
	return those(ctx, r.Client, o.GetNamespace(), func(w *v1alpha1.Workspace) bool {
		return w.Spec.Source.WarmPoolRef != nil && template.Name(w) == owner.Name
	})
}

func all(*v1alpha1.Workspace) bool { return true }

// those are the namespace's workspaces of that kind.
func those(ctx context.Context, c client.Reader, namespace string, are func(*v1alpha1.Workspace) bool,
	opts ...client.ListOption) (requests []reconcile.Request) {
	var list v1alpha1.WorkspaceList
	if !requeue.List(ctx, c, &list, append(opts, client.InNamespace(namespace))...) {
		return nil
	}
	for i := range list.Items {
		if are(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
