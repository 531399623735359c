// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
)

// decidePodRef makes the plan for a workspace with the pod of podRef, which Parley neither creates nor removes.
func decidePodRef(f *Facts) Plan {
	name := f.Workspace.Spec.Source.PodRef.Name
	switch {
	case f.Workspace.Spec.Suspend:
		return Plan{Phase: v1beta1.WorkspacePhaseStopped, Summary: conditions.Done(v1beta1.ReasonWorkspaceStopped,
			"Pod "+name+" is not used until spec.suspend is false")}
	case f.Pod == nil:
		return awaitOthers(f, v1beta1.ReasonPodNotFound, v1beta1.ReasonPodNotFound, Patience, "there is no Pod "+name+
			" with the label parley.dev/component=workspace in this namespace: create it, with Parley's workspace agent, or "+
			"name another one")
	case f.notOffered() != "":
		return failed(v1beta1.ReasonPodNotFound, f.notOffered())
	case !f.Pod.DeletionTimestamp.IsZero():
		return awaitOthers(f, v1beta1.ReasonPodLost, v1beta1.ReasonPodLost, StartPatience, "Pod "+name+
			" is being removed, and the next one of its name is waited for: create it, or name another one")
	}
	if taken := f.taken(); taken != "" {
		return failed(v1beta1.ReasonPodInUse, taken)
	}
	return observeForeign(f, "create it again, or name another one")
}

// notOffered says why the workspace may not use the pod of podRef; empty: it may.
func (f *Facts) notOffered() string {
	if f.Pod.Labels[podspec.LabelComponent] != podspec.ComponentWorkspace {
		return "Pod " + f.Pod.Name + " is no workspace, as it has not the label " + podspec.LabelComponent + "=" +
			podspec.ComponentWorkspace + ": name another one"
	}
	owner := metav1.GetControllerOf(f.Pod)
	if owner == nil || owner.Kind != "Workspace" && owner.Kind != "Sandbox" {
		return ""
	}
	return "Pod " + f.Pod.Name + " belongs to " + owner.Kind + " " + owner.Name + ": name a Pod that is no workspace"
}

// observeForeign makes the plan for a pod that Parley neither creates nor removes.
func observeForeign(f *Facts, advice string) Plan {
	if f.hasEnded() {
		return awaitOthers(f, v1beta1.ReasonPodLost, v1beta1.ReasonPodLost, LostPatience, "Pod "+f.Pod.Name+" ended: "+
			podstate.Words(f.Pod.Status.Reason, f.Pod.Status.Message)+"; "+advice)
	}
	p, lost := observe(f)
	if lost != "" && p.After <= 0 {
		return failed(v1beta1.ReasonPodLost, "Pod "+f.Pod.Name+" does not answer: "+lost+"; "+advice)
	}
	return p
}

// awaitOthers waits for other controllers or people, for so long since the workspace was last ready or stopped, or was
// created. Then it fails until they have acted.
func awaitOthers(f *Facts, reason, failure v1beta1.ConditionReason, patience time.Duration, message string) Plan {
	left := f.left(patience, failure)
	if left == 0 {
		return failed(failure, message)
	}
	return working(Nothing, v1beta1.WorkspacePhasePending, reason, message).after(left)
}

// left is what is left of a patience that began when the workspace was last ready or stopped, or was created; 0: it is
// over, or the workspace has already failed for that reason.
func (f *Facts) left(patience time.Duration, failure v1beta1.ConditionReason) time.Duration {
	ready := meta.FindStatusCondition(f.Workspace.Status.Conditions, v1beta1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionFalse && v1beta1.ReasonOf(ready) == failure {
		return 0
	}
	return max(0, patience-f.Now.Sub(f.waitingSince()))
}

// waitingSince is when the workspace was last ready or stopped; now, if it is.
func (f *Facts) waitingSince() time.Time {
	ready := meta.FindStatusCondition(f.Workspace.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case ready == nil:
		return f.Workspace.CreationTimestamp.Time
	case ready.Status == metav1.ConditionTrue:
		return f.Now
	}
	return ready.LastTransitionTime.Time
}

// taken says which other workspace uses the pod of podRef, and what to do; empty: this one may use it. An agent serves
// the first chat that sends a request, until the pod is recreated. Only the agent knows which chat that is. It refuses
// others, so a wrong guess has no effect but this message.
func (f *Facts) taken() string {
	all := append([]v1beta1.Workspace{*f.Workspace}, f.Sharers...)
	first := slices.MinFunc(all, f.byUse)
	switch {
	case !f.usesPod(&first) && slices.ContainsFunc(all, f.wasRefusedPod):
		return "Pod " + f.Pod.Name + " was the workspace of another chat, and is no other's until it is recreated: " +
			"recreate it, or name another one"
	case first.UID != f.Workspace.UID:
		return "Pod " + f.Pod.Name + " is the workspace of chat " + first.Spec.ChatRef.Name + ", and no other's until it " +
			"is recreated: name another Pod, or delete that chat and recreate the Pod"
	}
	return ""
}

// byUse sorts the workspaces that name the pod: the one that uses it, else the oldest one.
func (f *Facts) byUse(a, b v1beta1.Workspace) int {
	if uses := f.usesPod(&a); uses != f.usesPod(&b) {
		if uses {
			return -1
		}
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}

// usesPod reports whether the status of a workspace names this pod as its own.
func (f *Facts) usesPod(w *v1beta1.Workspace) bool {
	return w.Status.Pod != nil && w.Status.Pod.UID == string(f.Pod.UID) && !f.wasRefusedPod(*w)
}

// wasRefusedPod reports whether the status of a workspace says that this pod is another's. That remains when the other
// workspace is gone.
func (f *Facts) wasRefusedPod(w v1beta1.Workspace) bool {
	ready := meta.FindStatusCondition(w.Status.Conditions, v1beta1.ConditionReady)
	return w.Status.Pod != nil && w.Status.Pod.UID == string(f.Pod.UID) &&
		v1beta1.ReasonOf(ready) == v1beta1.ReasonPodInUse
}
