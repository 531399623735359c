// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// Starting says what calls in the workspace wait for; empty once they can run. They also run, and fail, if only a
// person can fix the workspace.
func Starting(w *v1beta1.Workspace, root *v1beta1.Chat) string {
	if !metav1.IsControlledBy(w, root) {
		if w.DeletionTimestamp.IsZero() && !ofFormer(w, root) {
			return ""
		}
		return "that of a former chat of this name is being removed"
	}
	ready := meta.FindStatusCondition(w.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case w.Spec.Suspend:
		return ""
	case StopsFirst(w, root):
		return "it is being stopped, because its model said so, and starts again after that"
	case ready == nil || w.Status.ObservedGeneration != w.Generation:
		return "it is about to start"
	case ready.Status == metav1.ConditionFalse, w.Status.Phase == v1beta1.WorkspacePhaseReady:
		return ""
	}
	return ready.Message
}

// StopsFirst reports whether the model has stopped the workspace, and it still runs. The next call waits for the stop,
// so that the commands reliably end.
func StopsFirst(w *v1beta1.Workspace, root *v1beta1.Chat) bool {
	stopped, needed := root.WorkspaceStoppedAt(), w.Spec.NeededAt
	if w.Spec.Source.PodRef != nil { // Parley does not stop such a pod.
		return false
	}
	if stopped == nil || needed == nil || needed.After(stopped.Time) {
		return false
	}
	ready := meta.FindStatusCondition(w.Status.Conditions, v1beta1.ConditionReady)
	failed := ready != nil && ready.Status == metav1.ConditionFalse
	done := w.Status.Phase == v1beta1.WorkspacePhaseStopped && w.Status.ObservedGeneration == w.Generation
	return !failed && !done
}

// ofFormer reports whether the workspace belongs to a former chat of the name. The garbage collector will remove it.
func ofFormer(w *v1beta1.Workspace, root *v1beta1.Chat) bool {
	owner := metav1.GetControllerOf(w)
	return owner != nil && owner.Kind == "Chat" && owner.Name == root.Name
}
