// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/workspace/life"
)

// provideWorkspace finds out how the workspace of the chat's family stands, and has it started where it is not there.
func (r *Reconciler) provideWorkspace(ctx context.Context, s *scope) error {
	s.facts.Workspace = &plan.Workspace{}
	root, err := r.gatherer.family.root(ctx, s)
	if err != nil || root == nil || root.WorkspaceSource() == nil {
		return err // The calls' results say that there is none.
	}
	w, err := r.actuator.needWorkspace(ctx, root)
	if words := denial.Of(err, root.Name); words != "" {
		s.facts.Workspace.Starting = "the API server refuses it: " + words
		s.lookAgain = plan.Sooner(s.lookAgain, denial.Lasts)
		return nil
	}
	if err != nil {
		return err
	}
	s.facts.Workspace.Starting = life.Starting(w, root)
	if ready := meta.FindStatusCondition(w.Status.Conditions, v1beta1.ConditionReady); ready != nil {
		s.facts.Workspace.Since = ready.LastTransitionTime.Time
	}
	return nil
}

// known reports whether the workspace knows what it is made from, and that it is needed: for a quarter of the time that
// it is kept, so that calls in a row cost no write each, and until it has observed when it is needed, as each new time
// would have to be observed in its turn. One that is never stopped is needed for ever.
func known(w *v1beta1.Workspace, root *v1beta1.Chat, now time.Time) bool {
	source, stopped := root.WorkspaceSource(), root.WorkspaceStoppedAt()
	if w.Spec.NeededAt == nil || !equality.Semantic.DeepEqual(&w.Spec.Source, source) ||
		stopped != nil && !w.Spec.NeededAt.After(stopped.Time) {
		return false
	}
	idle := time.Duration(source.IdleSecondsOrDefault()) * time.Second
	return idle == 0 || w.Status.ObservedGeneration != w.Generation || now.Sub(w.Spec.NeededAt.Time) < idle/4
}

// neededAt is the time to say that the workspace of the chat is needed at: now, but after it was last stopped also
// where another replica of the manager, whose clock was ahead, saw to that.
func neededAt(root *v1beta1.Chat, now time.Time) *metav1.MicroTime {
	at := metav1.NewMicroTime(now.Truncate(time.Microsecond)) // As it is stored.
	if stopped := root.WorkspaceStoppedAt(); stopped != nil && !at.After(stopped.Time) {
		at = metav1.NewMicroTime(stopped.Add(time.Microsecond))
	}
	return &at
}

// needWorkspace creates the workspace of the chat, or says of the one that is there that it is needed. One that runs is
// returned as it was: an idle stop writes the status first, so that it fails if the workspace is said to be needed.
func (a *actuator) needWorkspace(ctx context.Context, root *v1beta1.Chat) (*v1beta1.Workspace, error) {
	var w v1beta1.Workspace
	err := a.client.Get(ctx, client.ObjectKeyFromObject(root), &w)
	if apierrors.IsNotFound(err) {
		return a.createWorkspace(ctx, root, "")
	}
	if err != nil {
		return nil, fmt.Errorf("reading workspace %s: %w", root.Name, err)
	}
	if !metav1.IsControlledBy(&w, root) {
		return &w, nil // That of a former chat of the name is on its way out, or a stranger's: see life.Starting.
	}
	now := a.now()
	if known(&w, root, now) || life.StopsFirst(&w, root) {
		return &w, nil
	}
	next := w.DeepCopy()
	next.Spec.Source, next.Spec.NeededAt = *root.WorkspaceSource(), neededAt(root, now)
	if err := a.client.Update(ctx, next); err != nil {
		return nil, fmt.Errorf("having workspace %s started: %w", root.Name, err)
	}
	if w.Status.Phase == v1beta1.WorkspacePhaseReady && equality.Semantic.DeepEqual(w.Spec.Source, next.Spec.Source) {
		return &w, nil
	}
	return next, nil
}

// createWorkspace creates the workspace of the chat, which owns it. It begins with the files of the workspace of the
// UID copyFrom, if that is set.
func (a *actuator) createWorkspace(ctx context.Context, root *v1beta1.Chat, copyFrom string) (*v1beta1.Workspace,
	error) {
	w := &v1beta1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Namespace: root.Namespace, Name: root.Name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(root, v1beta1.GroupVersion.WithKind("Chat"))}},
		Spec: v1beta1.WorkspaceSpec{ChatRef: v1beta1.ChatReference{Name: root.Name}, Source: *root.WorkspaceSource(),
			CopyFrom: copyFrom, NeededAt: neededAt(root, a.now())},
	}
	err := a.client.Create(ctx, w)
	if apierrors.IsAlreadyExists(err) {
		w = &v1beta1.Workspace{} // What is read into an object leaves what that had before.
		err = a.live.Get(ctx, client.ObjectKeyFromObject(root), w)
	}
	if err != nil {
		return nil, fmt.Errorf("creating workspace %s: %w", root.Name, err)
	}
	return w, nil
}
