// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// gather reads what the life of the workspace depends on, and makes of its template what a new pod would be.
func (r *Reconciler) gather(ctx context.Context, w *v1alpha1.Workspace) (*life.Facts, *template.Objects, error) {
	f := &life.Facts{Workspace: w, Now: r.Now()}
	if err := r.readFamily(ctx, w, f); err != nil {
		return nil, nil, err
	}
	switch source := &w.Spec.Source; {
	case source.PodRef != nil:
		return f, nil, r.gatherNamedPod(ctx, f, source.PodRef.Name)
	case source.WarmPoolRef != nil:
		return f, nil, r.gatherPool(ctx, f)
	}
	if err := r.gatherPod(ctx, f, template.Name(w)); err != nil {
		return nil, nil, err
	}
	var claim corev1.PersistentVolumeClaim
	found, err := r.find(ctx, client.ObjectKey{Namespace: w.Namespace, Name: template.Name(w)}, &claim)
	if err != nil {
		return nil, nil, err
	}
	if found {
		f.Claim = &claim
	}
	objects, err := r.render(ctx, w, f)
	return f, objects, err
}

// gatherNamedPod reads the pod that podRef names into the facts, and who else names it.
func (r *Reconciler) gatherNamedPod(ctx context.Context, f *life.Facts, name string) error {
	var all v1alpha1.WorkspaceList
	err := r.Client.List(ctx, &all, client.InNamespace(f.Workspace.Namespace),
		client.MatchingFields{index.WorkspacesByPod: name})
	if err != nil {
		return fmt.Errorf("listing the workspaces that name Pod %s: %w", name, err)
	}
	isOwn := func(w v1alpha1.Workspace) bool { return w.UID == f.Workspace.UID }
	f.Sharers = slices.DeleteFunc(all.Items, isOwn)
	return r.gatherPod(ctx, f, name)
}

// gatherPod reads a pod of the namespace into the facts.
func (r *Reconciler) gatherPod(ctx context.Context, f *life.Facts, name string) error {
	var pod corev1.Pod
	found, err := r.find(ctx, client.ObjectKey{Namespace: f.Workspace.Namespace, Name: name}, &pod)
	if found {
		f.Pod = &pod
	}
	return err
}

// find reads an object. That the cache does not show it does not prove that there is none: it may have been created a
// moment ago, and creating it again would look like a stranger's.
func (r *Reconciler) find(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	err := r.Client.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return true, nil
}

// render makes the objects of the workspace, or says in the facts why that is not possible.
func (r *Reconciler) render(ctx context.Context, w *v1alpha1.Workspace, f *life.Facts) (*template.Objects, error) {
	var t corev1.PodTemplate
	key := client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Source.PodTemplateRef.Name}
	found, err := r.find(ctx, key, &t)
	if err != nil {
		return nil, err
	}
	if !found || !offered(&t, w.Spec.Source.PodTemplateSelector) {
		f.TemplateMissing = true
		return nil, nil
	}
	settings := r.Settings
	settings.Subject = "system:serviceaccount:" + w.Namespace + ":" + podspec.ServiceAccount
	objects, wrong := template.Render(w, &t, settings)
	if wrong != nil {
		f.TemplateError = wrong.Error()
	} else {
		f.NeedsClaim = objects.Claim != nil
	}
	return objects, nil
}

// offered reports whether workspaces may be made from the template, and whether the model could choose it that did.
func offered(t *corev1.PodTemplate, by *v1alpha1.WorkspaceTemplateSelector) bool {
	if by != nil && !labels.SelectorFromSet(by.Labels()).Matches(labels.Set(t.Labels)) {
		return false
	}
	return t.Labels[v1alpha1.LabelWorkspaceTemplate] == "true"
}

// maxFamily bounds how many chats of a family are looked at.
const maxFamily = 1000

// readFamily finds out what the chats of the family want of the workspace.
func (r *Reconciler) readFamily(ctx context.Context, w *v1alpha1.Workspace, f *life.Facts) error {
	var root v1alpha1.Chat
	found, err := r.find(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.ChatRef.Name}, &root)
	if err != nil || !found || !metav1.IsControlledBy(w, &root) {
		return err
	}
	f.StoppedAt = root.WorkspaceStoppedAt()
	var classes v1alpha1.ChatClassList
	if err := r.Client.List(ctx, &classes, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ChatClasses: %w", err)
	}
	if source := chatclass.Of(&root, classes.Items).Spec.Workspace; source != nil {
		f.Retain = new(source.DeletionPolicy == v1alpha1.WorkspaceRetain)
	}
	f.AtWorkAt, err = r.atWorkAt(ctx, w, &root)
	return err
}

// atWorkAt is when a chat of the family was last at work.
func (r *Reconciler) atWorkAt(ctx context.Context, w *v1alpha1.Workspace, root *v1alpha1.Chat) (last time.Time,
	_ error) {
	level := []v1alpha1.Chat{*root}
	for seen := 0; len(level) > 0 && seen < maxFamily; seen++ {
		chat := &level[0]
		at := r.workedAt(chat)
		if at.After(last) {
			last = at
		}
		var below v1alpha1.ChatList
		if err := r.Client.List(ctx, &below, client.InNamespace(w.Namespace),
			client.MatchingFields{index.ChatsByParent: chat.Name}); err != nil {
			return last, fmt.Errorf("listing the sub-chats of %s: %w", chat.Name, err)
		}
		level = append(level[1:], below.Items...)
	}
	return last, nil
}

// workedAt is when the chat was last at work: its condition Ready says since when it is not.
func (r *Reconciler) workedAt(chat *v1alpha1.Chat) time.Time {
	if chat.Status.Phase == v1alpha1.ChatRunning || chat.Status.Phase == v1alpha1.ChatInterrupting {
		return r.Now()
	}
	ready := meta.FindStatusCondition(chat.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || chat.Status.Turn == nil {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}
