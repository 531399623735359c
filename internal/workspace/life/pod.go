// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/pods/podstate"
)

// superviseOwn is what becomes of a pod that is to run.
func superviseOwn(f *Facts) Plan {
	if f.ended() {
		return working(RemovePod, v1alpha1.WorkspacePhaseStopping, v1alpha1.ReasonPodLost,
			"its pod ended and is replaced: "+podstate.Words(f.Pod.Status.Reason, f.Pod.Status.Message))
	}
	p, lost := observe(f)
	if lost != "" && p.After <= 0 {
		return working(RemovePod, v1alpha1.WorkspacePhaseStopping, v1alpha1.ReasonPodLost,
			"its pod does not answer and is replaced: "+lost)
	}
	return p
}

// ended reports whether the pod runs no more.
func (f *Facts) ended() bool {
	return f.Pod.Status.Phase == corev1.PodFailed || f.Pod.Status.Phase == corev1.PodSucceeded
}

// observe is what a workspace says of a pod that is to run. Of one that was ready and is not any more, lost says why;
// once LostPatience is over, the plan has no time to look again.
func observe(f *Facts) (p Plan, lost string) {
	ready := podstate.Condition(f.Pod, corev1.PodReady)
	switch {
	case ready != nil && ready.Status == corev1.ConditionTrue:
		return readyPlan(f), ""
	case f.wasReady(ready):
		return lostPlan(f, ready)
	}
	return startingPlan(f), ""
}

// readyPlan is what a workspace says whose pod is; it looks again when the pod may be idle.
func readyPlan(f *Facts) Plan {
	p := Plan{Phase: v1alpha1.WorkspacePhaseReady,
		Summary: conditions.Done(v1alpha1.ReasonWorkspaceReady, "commands run in pod "+f.Pod.Name)}
	if left := f.idleIn(); left < forever {
		p.After = left
	}
	return p
}

// wasReady reports whether this very pod has been ready, as the status remembers.
func (f *Facts) wasReady(ready *corev1.PodCondition) bool {
	status := &f.Workspace.Status
	said := v1alpha1.ReasonOf(meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady))
	return ready != nil && status.Pod != nil && status.Pod.UID == string(f.Pod.UID) &&
		(status.Phase == v1alpha1.WorkspacePhaseReady || said == v1alpha1.ReasonPodLost)
}

// lostPlan is what a workspace says of a pod that was ready and is not, and why that is so.
func lostPlan(f *Facts, ready *corev1.PodCondition) (Plan, string) {
	why := podstate.Trouble(f.Pod)
	if why == "" {
		why = podstate.Words(ready.Reason, ready.Message)
	}
	p := working(Nothing, v1alpha1.WorkspacePhaseStarting, v1alpha1.ReasonPodLost, "its pod does not answer: "+why)
	p.After = max(0, LostPatience-f.Now.Sub(ready.LastTransitionTime.Time))
	return p, why
}

// startingPlan is what a workspace says whose pod is not ready yet.
func startingPlan(f *Facts) Plan {
	why := podstate.Trouble(f.Pod)
	if why == "" { // A volume or a network that the kubelet cannot set up is said in Events alone.
		why = "its containers are being created; the Events of Pod " + f.Pod.Name + " say what holds them"
	}
	if left := StartPatience - f.Now.Sub(f.Pod.CreationTimestamp.Time); left > 0 {
		p := working(Nothing, v1alpha1.WorkspacePhaseStarting, v1alpha1.ReasonPodStarting, why)
		p.After = left
		return p
	}
	return stalled(v1alpha1.ReasonPodNotStarting, "its pod has not started within "+StartPatience.String()+": "+why, 0)
}

// Deadline is when a plan is to be looked at again, at least a moment from now.
func (p *Plan) Deadline() time.Duration {
	if p.After <= 0 {
		return 0
	}
	return p.After + 50*time.Millisecond
}
