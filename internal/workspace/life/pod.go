// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/pods/podstate"
	"parley.dev/parley/internal/workspace/template"
)

// superviseOwn makes the plan for a pod that Parley has created.
func superviseOwn(f *Facts) Plan {
	if template.IsCopier(f.Pod) {
		return superviseCopy(f)
	}
	if f.hasEnded() {
		return replaceEnded(f)
	}
	p, lost := observe(f)
	if lost != "" && p.After <= 0 {
		return working(RemovePod, v1beta1.WorkspacePhaseStopping, v1beta1.ReasonPodLost,
			"its pod does not answer and is replaced: "+lost)
	}
	return p
}

// replaceEnded replaces a pod that has ended. A kubelet that rejects one, such as while its node shuts down, rejects
// the next one, too: the pod of a few seconds ago stays for a while.
func replaceEnded(f *Facts) Plan {
	why := "its pod ended and is replaced: " + podstate.Words(f.Pod.Status.Reason, f.Pod.Status.Message)
	if left := retry - f.Now.Sub(f.Pod.CreationTimestamp.Time); left > 0 {
		return working(Nothing, v1beta1.WorkspacePhaseStarting, v1beta1.ReasonPodLost, why).after(left)
	}
	return working(RemovePod, v1beta1.WorkspacePhaseStopping, v1beta1.ReasonPodLost, why)
}

func (f *Facts) hasEnded() bool {
	return f.Pod.Status.Phase == corev1.PodFailed || f.Pod.Status.Phase == corev1.PodSucceeded
}

// observe makes the plan for a running pod. lost says why a pod that was ready is not; after LostPatience, the plan has
// no deadline.
func observe(f *Facts) (p Plan, lost string) {
	ready := podstate.Condition(f.Pod, corev1.PodReady)
	switch {
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return runningPlan(f), ""
	case f.wasReady(ready):
		return lostPlan(f, ready)
	}
	return startingPlan(f), ""
}

// runningPlan is the plan for a ready pod until it may be idle.
func runningPlan(f *Facts) Plan {
	p := Plan{Phase: v1beta1.WorkspacePhaseReady,
		Summary: conditions.Done(v1beta1.ReasonWorkspaceReady, "commands run in pod "+f.Pod.Name)}
	if left := f.idleIn(); left < forever {
		p.After = left
	}
	return p
}

// wasReady reports whether the status says that this pod was ready.
func (f *Facts) wasReady(ready *corev1.PodCondition) bool {
	status := &f.Workspace.Status
	reason := v1beta1.ReasonOf(meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady))
	return ready != nil && status.Pod != nil && status.Pod.UID == string(f.Pod.UID) &&
		(status.Phase == v1beta1.WorkspacePhaseReady || reason == v1beta1.ReasonPodLost)
}

// lostPlan is the plan for a pod that was ready and is not, and why it is not. The pod's condition may have the time of
// a node whose clock is wrong, so what counts is since when that of the workspace says so.
func lostPlan(f *Facts, ready *corev1.PodCondition) (Plan, string) {
	why := podstate.Trouble(f.Pod)
	if why == "" {
		why = podstate.Words(ready.Reason, ready.Message)
	}
	return working(Nothing, v1beta1.WorkspacePhaseStarting, v1beta1.ReasonPodLost, "its pod does not answer: "+why).
		after(f.left(LostPatience, v1beta1.ReasonPodLost)), why
}

// startingPlan is the plan for a pod that is not ready yet.
func startingPlan(f *Facts) Plan {
	why := podstate.Trouble(f.Pod)
	if why == "" { // The kubelet reports problems with volumes and networks only in Events.
		why = "its containers are being created; the Events of Pod " + f.Pod.Name + " say what holds them"
	}
	if left := StartPatience - f.Now.Sub(f.Pod.CreationTimestamp.Time); left > 0 {
		return working(Nothing, v1beta1.WorkspacePhaseStarting, v1beta1.ReasonPodStarting, why).after(left)
	}
	return failed(v1beta1.ReasonPodNotStarting, "its pod has not started within "+StartPatience.String()+": "+why)
}
