// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// gather reads the facts about the workspace, and renders the objects of a new pod.
func (r *Reconciler) gather(ctx context.Context, w *v1beta1.Workspace) (*life.Facts, *template.Objects, error) {
	f := &life.Facts{Workspace: w, Now: r.Now()}
	if err := r.gatherFamily(ctx, f); err != nil {
		return nil, nil, err
	}
	switch source := &w.Spec.Source; {
	case source.PodRef != nil:
		return f, nil, r.gatherNamedPod(ctx, f, source.PodRef.Name)
	case source.WarmPoolRef != nil:
		return f, nil, r.gatherPool(ctx, f)
	}
	var err error
	if f.Pod, err = find(ctx, r, f, template.Name(w), &corev1.Pod{}); err != nil {
		return nil, nil, err
	}
	if f.Claim, err = find(ctx, r, f, template.Name(w), &corev1.PersistentVolumeClaim{}); err != nil {
		return nil, nil, err
	}
	objects, err := r.render(ctx, f)
	return f, objects, err
}

// gatherNamedPod reads the pod of podRef, and the other workspaces that name it.
func (r *Reconciler) gatherNamedPod(ctx context.Context, f *life.Facts, name string) error {
	var all v1beta1.WorkspaceList
	err := r.Client.List(ctx, &all, client.InNamespace(f.Workspace.Namespace),
		client.MatchingFields{index.WorkspacesByPod: name})
	if err != nil {
		return fmt.Errorf("listing the workspaces that name Pod %s: %w", name, err)
	}
	isOwn := func(w v1beta1.Workspace) bool { return w.UID == f.Workspace.UID }
	f.Sharers = slices.DeleteFunc(all.Items, isOwn)
	f.Pod, err = find(ctx, r, f, name, &corev1.Pod{})
	return err
}

// find reads an object of the workspace's namespace; nil: the cache has none.
func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, r *Reconciler, f *life.Facts, name string, into P) (P, error) {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: f.Workspace.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %T %s: %w", into, name, err)
	}
	return into, nil
}

// render makes the objects of the workspace. If that is not possible, the facts say why.
func (r *Reconciler) render(ctx context.Context, f *life.Facts) (*template.Objects, error) {
	source := &f.Workspace.Spec.Source
	t, err := find(ctx, r, f, source.PodTemplateRef.Name, &corev1.PodTemplate{})
	if err != nil {
		return nil, err
	}
	if t == nil || !isOffered(t, source.PodTemplateSelector) {
		f.TemplateMissing = true
		return nil, nil
	}
	settings := r.Settings
	settings.Subject = "system:serviceaccount:" + f.Workspace.Namespace + ":" + podspec.ServiceAccount
	if f.Workspace.IsCopying() {
		source, err := find(ctx, r, f, template.SourceName(f.Workspace), &corev1.Pod{})
		if err != nil {
			return nil, err
		}
		if source != nil {
			settings.SourceNode = source.Spec.NodeName
		}
	}
	objects, invalid := template.Render(f.Workspace, t, settings)
	if invalid != nil {
		f.TemplateError = invalid.Error()
	} else {
		f.NeedsClaim = objects.Claim != nil
		f.ClaimDiffers = f.NeedsClaim && f.Claim != nil && template.Differs(f.Claim, objects.Claim)
	}
	return objects, nil
}

// isOffered reports whether workspaces may be made from the template, and whether the model that chose it could do so.
func isOffered(t *corev1.PodTemplate, by *v1beta1.WorkspaceTemplateSelector) bool {
	if by != nil && !labels.SelectorFromSet(by.Labels()).Matches(labels.Set(t.Labels)) {
		return false
	}
	return t.Labels[v1beta1.LabelWorkspaceTemplate] == "true"
}

// maxFamily bounds how many chats of a family are read.
const maxFamily = 1000

// gatherFamily reads what the chats of the family need from the workspace.
func (r *Reconciler) gatherFamily(ctx context.Context, f *life.Facts) error {
	w := f.Workspace
	root, err := find(ctx, r, f, w.Spec.ChatRef.Name, &v1beta1.Chat{})
	if err != nil || root == nil || !metav1.IsControlledBy(w, root) {
		return err
	}
	f.StoppedAt = root.WorkspaceStoppedAt()
	var classes v1beta1.ChatClassList
	if err := r.Client.List(ctx, &classes, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ChatClasses: %w", err)
	}
	if source := chatclass.Of(root, classes.Items).Spec.Workspace; source != nil {
		f.Retain = new(source.DeletionPolicy == v1beta1.WorkspaceRetain)
	}
	return r.gatherActivity(ctx, f, root)
}

// gatherActivity finds out when a chat of the family was last active, and whether one waits for the workspace.
func (r *Reconciler) gatherActivity(ctx context.Context, f *life.Facts, root *v1beta1.Chat) error {
	family := []v1beta1.Chat{*root}
	for i := 0; i < len(family) && i < maxFamily; i++ {
		chat := &family[i]
		if at := r.lastActive(chat); at.After(f.ActiveAt) {
			f.ActiveAt = at
		}
		f.Awaited = f.Awaited || chat.Status.Wait != nil && chat.Status.Wait.For == v1beta1.WaitForWorkspace
		var below v1beta1.ChatList
		if err := r.Client.List(ctx, &below, client.InNamespace(root.Namespace),
			client.MatchingFields{index.ChatsByParent: chat.Name}); err != nil {
			return fmt.Errorf("listing the sub-chats of %s: %w", chat.Name, err)
		}
		family = append(family, below.Items...)
	}
	return nil
}

// lastActive is when the chat was last active: the transition time of its condition Ready, once it is not.
func (r *Reconciler) lastActive(chat *v1beta1.Chat) time.Time {
	if chat.Status.Phase == v1beta1.ChatRunning || chat.Status.Phase == v1beta1.ChatInterrupting {
		return r.Now()
	}
	ready := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil || chat.Status.Turn == nil {
		return time.Time{}
	}
	return ready.LastTransitionTime.Time
}

// gatherPool reads the objects of the workspace's warm pool.
func (r *Reconciler) gatherPool(ctx context.Context, f *life.Facts) (err error) {
	f.Pool = &life.Pool{}
	if f.Pool.Installed, err = r.Sandboxes.Installed(); err != nil || !f.Pool.Installed {
		return err
	}
	f.Pool.Claim, err = find(ctx, r, f, template.Name(f.Workspace), &pools.SandboxClaim{})
	if err != nil || f.Pool.Claim == nil || f.Pool.Claim.Status.SandboxStatus.Name == "" {
		return err
	}
	sandbox, err := find(ctx, r, f, f.Pool.Claim.Status.SandboxStatus.Name, &sandboxes.Sandbox{})
	if err != nil || sandbox == nil || !metav1.IsControlledBy(sandbox, f.Pool.Claim) {
		return err
	}
	f.Pool.Sandbox = sandbox
	return r.gatherSandboxPod(ctx, f, sandbox)
}

func (r *Reconciler) gatherSandboxPod(ctx context.Context, f *life.Facts, sandbox *sandboxes.Sandbox) error {
	name := cmp.Or(sandbox.Annotations[sandboxes.SandboxPodNameAnnotation], sandbox.Name)
	pod, err := find(ctx, r, f, name, &corev1.Pod{})
	if pod != nil && metav1.IsControlledBy(pod, sandbox) {
		f.Pod = pod
	}
	return err
}
