// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
)

// taken says whose the pod is that podRef names, and what to do; empty: it is for this workspace. A pod's agent serves
// the first chat that calls it, until the pod is recreated. Which one that is the agent alone knows; it lets nobody
// else have a call, so a wrong guess costs nothing but this sentence.
func (f *Facts) taken() string {
	all := append([]v1alpha1.Workspace{*f.Workspace}, f.Sharers...)
	first := slices.MinFunc(all, f.sooner)
	switch {
	case !f.has(&first) && slices.ContainsFunc(all, f.lacks):
		return "Pod " + f.Pod.Name + " was the workspace of another chat, and is no other's until it is recreated: " +
			"recreate it, or name another one"
	case first.UID != f.Workspace.UID:
		return "Pod " + f.Pod.Name + " is the workspace of chat " + first.Spec.ChatRef.Name + ", and no other's until it " +
			"is recreated: name another Pod, or delete that chat and recreate the Pod"
	}
	return ""
}

// sooner sorts those that name the pod: one that has it, else the one that needed it first.
func (f *Facts) sooner(a, b v1alpha1.Workspace) int {
	if of := f.has(&a); of != f.has(&b) {
		if of {
			return -1
		}
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}

// has reports whether the workspace has this very pod.
func (f *Facts) has(w *v1alpha1.Workspace) bool {
	return w.Status.Pod != nil && w.Status.Pod.UID == string(f.Pod.UID) && !f.lacks(*w)
}

// lacks reports whether the workspace has said of this very pod that it is another's. That stays so, also when the
// other workspace is gone.
func (f *Facts) lacks(w v1alpha1.Workspace) bool {
	ready := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
	return w.Status.Pod != nil && w.Status.Pod.UID == string(f.Pod.UID) &&
		v1alpha1.ReasonOf(ready) == v1alpha1.ReasonPodTaken
}
