// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
)

// decidePodRef is what becomes of a workspace whose pod somebody else runs: it is used, and never created or removed.
func decidePodRef(f *Facts) Plan {
	name := f.Workspace.Spec.Source.PodRef.Name
	switch {
	case f.Workspace.Spec.Suspend:
		return Plan{Phase: v1alpha1.WorkspacePhaseStopped, Summary: conditions.Done(v1alpha1.ReasonWorkspaceStopped,
			"Pod "+name+" is not used until spec.suspend is false")}
	case f.Pod == nil:
		return awaitOthers(f, v1alpha1.ReasonPodNotFound, v1alpha1.ReasonPodNotFound, Patience, "there is no Pod "+name+
			" with the label parley.dev/component=workspace in this namespace: create it, with Parley's workspace agent, or "+
			"name another one")
	case f.notOffered() != "":
		return stalled(v1alpha1.ReasonPodNotFound, f.notOffered(), 0)
	case !f.Pod.DeletionTimestamp.IsZero():
		return awaitOthers(f, v1alpha1.ReasonPodLost, v1alpha1.ReasonPodLost, StartPatience, "Pod "+name+
			" is being removed, and the next one of its name is waited for: create it, or name another one")
	}
	if taken := f.taken(); taken != "" {
		return stalled(v1alpha1.ReasonPodTaken, taken, 0)
	}
	return observeForeign(f, "create it again, or name another one")
}

// notOffered says why the pod that podRef names is none that the workspace may use: it is another's.
func (f *Facts) notOffered() string {
	if f.Pod.Labels[podspec.LabelComponent] != podspec.ComponentWorkspace { // Generation pods are seen, too.
		return "Pod " + f.Pod.Name + " is no workspace, as it has not the label " + podspec.LabelComponent + "=" +
			podspec.ComponentWorkspace + ": name another one"
	}
	owner := metav1.GetControllerOf(f.Pod)
	if owner == nil || owner.Kind != "Workspace" && owner.Kind != "Sandbox" {
		return ""
	}
	return "Pod " + f.Pod.Name + " belongs to " + owner.Kind + " " + owner.Name + ": name a Pod that is no workspace"
}

// observeForeign is what a workspace says whose pod the operator neither creates nor removes.
func observeForeign(f *Facts, mend string) Plan {
	if f.ended() {
		return awaitOthers(f, v1alpha1.ReasonPodLost, v1alpha1.ReasonPodLost, LostPatience, "Pod "+f.Pod.Name+" ended: "+
			podstate.Words(f.Pod.Status.Reason, f.Pod.Status.Message)+"; "+mend)
	}
	p, lost := observe(f)
	if lost != "" && p.After <= 0 {
		return stalled(v1alpha1.ReasonPodLost, "Pod "+f.Pod.Name+" does not answer: "+lost+"; "+mend, 0)
	}
	return p
}

// awaitOthers is what a workspace says that waits for others to do something, and why: for so long since it was last
// ready or stopped, or since it is there. Then a person is needed, until they have done it.
func awaitOthers(f *Facts, working, failed v1alpha1.ConditionReason, patience time.Duration, message string) Plan {
	left := patience - f.Now.Sub(f.waitingSince())
	ready := meta.FindStatusCondition(f.Workspace.Status.Conditions, v1alpha1.ConditionReady)
	given := ready != nil && ready.Status == metav1.ConditionFalse && v1alpha1.ReasonOf(ready) == failed
	if given || left <= 0 {
		return stalled(failed, message, 0)
	}
	return Plan{Phase: v1alpha1.WorkspacePhasePending, After: left, Summary: conditions.Working(working, message)}
}

// waitingSince is when the workspace was last ready or stopped; it is now, if it still says so.
func (f *Facts) waitingSince() time.Time {
	ready := meta.FindStatusCondition(f.Workspace.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return f.Workspace.CreationTimestamp.Time
	case ready.Status == metav1.ConditionTrue:
		return f.Now
	}
	return ready.LastTransitionTime.Time
}
