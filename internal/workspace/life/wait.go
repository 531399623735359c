// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// Starting says what calls that need the workspace of the chat wait for; empty once they can be run: the workspace is
// ready, or only a person can mend it, which the calls' results say.
func Starting(w *v1alpha1.Workspace, root *v1alpha1.Chat) string {
	if !metav1.IsControlledBy(w, root) {
		if w.DeletionTimestamp.IsZero() && !ofFormer(w, root) {
			return ""
		}
		return "that of a former chat of this name is being removed"
	}
	ready := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case w.Spec.Suspend: // Until a person ends that.
		return ""
	case StopsFirst(w, root):
		return "it is being stopped, because its model said so, and starts again after that"
	case ready == nil || w.Status.ObservedGeneration != w.Generation:
		return "it is about to start"
	case ready.Status == metav1.ConditionFalse, w.Status.Phase == v1alpha1.WorkspacePhaseReady:
		return ""
	}
	return ready.Message
}

// StopsFirst reports whether the model has stopped the workspace, and that has not come about yet. Who needs it again
// waits for that: else commands would run on that were to end, or not, as it happens.
func StopsFirst(w *v1alpha1.Workspace, root *v1alpha1.Chat) bool {
	stopped, needed := root.WorkspaceStoppedAt(), w.Spec.NeededAt
	if w.Spec.Source.PodRef != nil { // Its pod is nobody's to stop.
		return false
	}
	if stopped == nil || needed == nil || needed.After(stopped.Time) {
		return false
	}
	ready := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
	failed := ready != nil && ready.Status == metav1.ConditionFalse
	done := w.Status.Phase == v1alpha1.WorkspacePhaseStopped && w.Status.ObservedGeneration == w.Generation
	return !failed && !done
}

// ofFormer reports whether the workspace belongs to a former chat of the name. The garbage collector removes it some
// time after the chat has gone.
func ofFormer(w *v1alpha1.Workspace, root *v1alpha1.Chat) bool {
	owner := metav1.GetControllerOf(w)
	return owner != nil && owner.Kind == "Chat" && owner.Name == root.Name
}
