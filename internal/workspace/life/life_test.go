// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func micro(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now.Add(-d)) }

// workspace was created a minute ago and is to run.
func workspace(change ...func(*v1beta1.Workspace)) *v1beta1.Workspace {
	w := &v1beta1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: "w", CreationTimestamp: ago(time.Minute)},
		Spec: v1beta1.WorkspaceSpec{Source: v1beta1.WorkspaceSource{
			PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}},
	}
	for _, c := range change {
		c(w)
	}
	return w
}

func suspended(w *v1beta1.Workspace) { w.Spec.Suspend = true }

func old(w *v1beta1.Workspace) { w.CreationTimestamp = ago(time.Hour) }

func needed(since time.Duration) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) { w.Spec.NeededAt = new(micro(since)) }
}

func idle(seconds int32) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) { w.Spec.Source.IdleSeconds = &seconds }
}

// isStopping is a status that says that the pod of UID "p" is being removed.
func isStopping(w *v1beta1.Workspace) {
	said(metav1.ConditionUnknown, v1beta1.ReasonPodStopping, 10*time.Second)(w)
	w.Status.Phase, w.Status.Pod = v1beta1.WorkspacePhaseStopping, &v1beta1.WorkspacePod{Name: "pod", UID: "p"}
}

// wasReady is a status that says that the pod of UID "p" was ready.
func wasReady(w *v1beta1.Workspace) {
	said(metav1.ConditionTrue, v1beta1.ReasonWorkspaceReady, time.Hour)(w)
	w.Status.Phase, w.Status.Pod = v1beta1.WorkspacePhaseReady, &v1beta1.WorkspacePod{Name: "pod", UID: "p"}
}

// wasLost is a status that has said for that long that the pod of UID "p" does not answer.
func wasLost(since time.Duration) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) {
		said(metav1.ConditionUnknown, v1beta1.ReasonPodLost, since)(w)
		w.Status.Phase, w.Status.Pod = v1beta1.WorkspacePhaseStarting, &v1beta1.WorkspacePod{Name: "pod", UID: "p"}
	}
}

func owned() []metav1.OwnerReference {
	return []metav1.OwnerReference{{UID: "w", Controller: new(true)}}
}

// pod was created that long ago.
func pod(age time.Duration, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", UID: "p", CreationTimestamp: ago(age),
		Labels:          map[string]string{podspec.LabelComponent: podspec.ComponentWorkspace},
		OwnerReferences: owned()}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	for _, c := range change {
		c(p)
	}
	return p
}

func ready(status corev1.ConditionStatus, since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status,
			Reason: "ContainersNotReady", LastTransitionTime: ago(since)})
	}
}

func isReady(p *corev1.Pod) { ready(corev1.ConditionTrue, time.Minute)(p) }

func ended(p *corev1.Pod) {
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
}

func pulling(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
}

func unscheduled(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled,
		Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"})
}

// deleted was deleted; its grace is over at that time from now.
func deleted(grace time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now.Add(grace))) }
}

func foreign(p *corev1.Pod) { p.OwnerReferences = nil }

func claim(phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim",
		Annotations: map[string]string{AnnotationWorkspace: "w"}}, Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
}

// removed is a claim that was deleted that long ago, and is still there.
func removed(c *corev1.PersistentVolumeClaim, since time.Duration) *corev1.PersistentVolumeClaim {
	c.DeletionTimestamp = new(ago(since))
	return c
}

// outcome is what a test expects of a plan.
type outcome struct {
	act    Act
	phase  v1beta1.WorkspacePhase
	ready  metav1.ConditionStatus
	reason v1beta1.ConditionReason
	says   string
	after  time.Duration
}

func (o outcome) check(t *testing.T, p Plan) {
	t.Helper()
	check.Contains(t, p.Summary.Message, o.says)
	o.says = p.Summary.Message
	got := outcome{p.Act, p.Phase, p.Summary.Ready, p.Summary.Reason, p.Summary.Message, p.After}
	check.Equal(t, "plan", o, got, cmp.AllowUnexported(outcome{}))
}

func fails(reason v1beta1.ConditionReason, says string, after time.Duration) outcome {
	return outcome{Nothing, v1beta1.WorkspacePhaseFailed, metav1.ConditionFalse, reason, says, after}
}

func isReadyFor(after time.Duration) outcome {
	const ready = v1beta1.WorkspacePhaseReady
	return outcome{Nothing, ready, metav1.ConditionTrue, v1beta1.ReasonWorkspaceReady, "pod", after}
}

func isStopped(says string) outcome {
	return outcome{Nothing, v1beta1.WorkspacePhaseStopped, metav1.ConditionTrue, v1beta1.ReasonWorkspaceStopped, says, 0}
}

func pends(act Act, says string, after time.Duration) outcome {
	return outcome{act, v1beta1.WorkspacePhasePending, metav1.ConditionUnknown, v1beta1.ReasonPodStarting, says, after}
}

func waitsFor(reason v1beta1.ConditionReason, says string, after time.Duration) outcome {
	return outcome{Nothing, v1beta1.WorkspacePhasePending, metav1.ConditionUnknown, reason, says, after}
}

func starts(reason v1beta1.ConditionReason, says string, after time.Duration) outcome {
	return outcome{Nothing, v1beta1.WorkspacePhaseStarting, metav1.ConditionUnknown, reason, says, after}
}

func stops(act Act, says string, after time.Duration) outcome {
	return outcome{act, v1beta1.WorkspacePhaseStopping, metav1.ConditionUnknown, v1beta1.ReasonPodStopping, says, after}
}

func replaces(says string) outcome {
	return outcome{RemovePod, v1beta1.WorkspacePhaseStopping, metav1.ConditionUnknown, v1beta1.ReasonPodLost, says, 0}
}

// Security (a hostile workspace): cannot outlive its chat: its pod and its claim are deleted with it, the pod by force
// if its node does not answer. Also TestAModelWorksInAWorkspace of test/e2e;
// TestAStoppedContainerEndsAllAndRemembersHow of internal/workspace/agent/process.
func TestLife(t *testing.T) {
	for name, c := range map[string]struct {
		facts Facts
		want  outcome
	}{
		"without a pod: one is created": {Facts{Workspace: workspace()}, pends(CreatePod, "being created", 0)},
		"without its claim: that comes first": {
			Facts{Workspace: workspace(), NeedsClaim: true}, pends(CreateClaim, "storage", 0)},
		"with its claim, which waits for its first consumer: the pod is created": {
			Facts{Workspace: workspace(), NeedsClaim: true, Claim: claim(corev1.ClaimPending)},
			pends(CreatePod, "being created", 0)},
		"the volume is gone: a person is told": {
			Facts{Workspace: workspace(), NeedsClaim: true, Claim: claim(corev1.ClaimLost)},
			fails(v1beta1.ReasonStorageLost, "delete the claim", 0)},
		"its claim is being removed: that is waited for": {
			Facts{Workspace: workspace(), NeedsClaim: true, Claim: removed(claim(corev1.ClaimBound), time.Minute)},
			pends(Nothing, "is being removed", 4*time.Minute)},
		"its claim is being removed, and something keeps it: a person is told": {
			Facts{Workspace: workspace(), NeedsClaim: true, Claim: removed(claim(corev1.ClaimLost), 5*time.Minute)},
			fails(v1beta1.ReasonStorageLost, "something keeps it", 0)},
		"a claim of a stranger: a person is told": {
			Facts{Workspace: workspace(), Claim: &corev1.PersistentVolumeClaim{}},
			fails(v1beta1.ReasonNameConflict, "PersistentVolumeClaim", 10*time.Second)},
		"a pod of a stranger: a person is told, and it stays": {
			Facts{Workspace: workspace(suspended), Pod: pod(0, foreign)},
			fails(v1beta1.ReasonNameConflict, "Pod pod", 10*time.Second)},
		"no template yet: it is waited for": {
			Facts{Workspace: workspace(func(w *v1beta1.Workspace) { w.CreationTimestamp = ago(4 * time.Second) }),
				TemplateMissing: true},
			waitsFor(v1beta1.ReasonTemplateNotFound, "no PodTemplate go", 6*time.Second)},
		"no template after ten seconds: a person is told": {
			Facts{Workspace: workspace(), TemplateMissing: true},
			fails(v1beta1.ReasonTemplateNotFound, "no PodTemplate go", 0)},
		"a wrong template: its error is told": {
			Facts{Workspace: workspace(), TemplateError: "no image"},
			fails(v1beta1.ReasonTemplateInvalid, "PodTemplate go: no image", 0)},
		"a template that is missing while the pod runs: nothing changes": {
			Facts{Workspace: workspace(), TemplateMissing: true, Pod: pod(time.Minute, isReady)},
			isReadyFor(29 * time.Minute)},
		"the claim is refused: the API server's words, and again later": {
			Facts{Workspace: workspace(), NeedsClaim: true, Refused: "exceeded quota", RefusedAct: CreateClaim},
			fails(v1beta1.ReasonStorageRejected, "exceeded quota", 10*time.Second)},
		"the pod is refused: the API server's words, and again later": {
			Facts{Workspace: workspace(), Refused: "violates PodSecurity", RefusedAct: CreatePod},
			fails(v1beta1.ReasonPodRejected, "violates PodSecurity", 10*time.Second)},
		"its pod is not scheduled: the scheduler's words": {
			Facts{Workspace: workspace(), Pod: pod(time.Minute, unscheduled)},
			starts(v1beta1.ReasonPodStarting, "Unschedulable: 0/3 nodes", 4*time.Minute)},
		"its image is not to be had: the kubelet's words": {
			Facts{Workspace: workspace(), Pod: pod(time.Minute, pulling)},
			starts(v1beta1.ReasonPodStarting, "ImagePullBackOff", 4*time.Minute)},
		"its kubelet holds it and says nothing of it in its status: where to look is told": {
			Facts{Workspace: workspace(), Pod: pod(6 * time.Minute)},
			fails(v1beta1.ReasonPodNotStarting, "the Events of Pod pod say", 0)},
		"its pod does not start in time: a person is told": {
			Facts{Workspace: workspace(), Pod: pod(6*time.Minute, pulling)},
			fails(v1beta1.ReasonPodNotStarting, "ImagePullBackOff", 0)},
		"its pod starts after all: it is ready": {
			Facts{Workspace: workspace(), ActiveAt: now, Pod: pod(9*time.Minute, isReady)},
			isReadyFor(30 * time.Minute)},
		"its pod was ready a moment ago: it may come back": {
			Facts{Workspace: workspace(wasLost(20 * time.Second)), Pod: pod(time.Hour, ready(corev1.ConditionFalse, 0))},
			starts(v1beta1.ReasonPodLost, "ContainersNotReady", 40*time.Second)},
		"its pod was ready a minute ago: it is replaced": {
			Facts{Workspace: workspace(wasLost(time.Minute)), Pod: pod(time.Hour, ready(corev1.ConditionUnknown, 0))},
			replaces("replaced")},
		"its pod was ready by now, and the clock of its node is behind: it may come back": {
			Facts{Workspace: workspace(wasReady), Pod: pod(time.Hour, ready(corev1.ConditionFalse, 2*time.Minute))},
			starts(v1beta1.ReasonPodLost, "ContainersNotReady", LostPatience)},
		"its kubelet has just rejected its pod: the next one comes after a pause": {
			Facts{Workspace: workspace(), Pod: pod(4*time.Second, ended)},
			starts(v1beta1.ReasonPodLost, "low on memory", 6*time.Second)},
		"its pod ended: it is replaced": {
			Facts{Workspace: workspace(), Pod: pod(time.Hour, ended)},
			replaces("Evicted: low on memory")},
		"its pod goes: that is waited for": {
			Facts{Workspace: workspace(), Pod: pod(time.Hour, deleted(10*time.Second))},
			stops(Nothing, "being removed", 40*time.Second)},
		"its pod should long be gone: it is forced": {
			Facts{Workspace: workspace(), Pod: pod(time.Hour, deleted(-30*time.Second))},
			stops(ForcePod, "node-1 has not", 10*time.Second)},
		"suspended with a pod: that goes": {
			Facts{Workspace: workspace(suspended), Pod: pod(time.Hour, isReady)},
			stops(RemovePod, "being removed", 0)},
		"suspended without a pod: it says how that ends": {
			Facts{Workspace: workspace(suspended)}, isStopped("until spec.suspend is false")},
		"suspended without a template: it is, all the same": {
			Facts{Workspace: workspace(suspended), TemplateMissing: true}, isStopped("until spec.suspend is false")},
		"not needed for half an hour, without a pod: the next call starts it": {
			Facts{Workspace: workspace(old, needed(30*time.Minute))}, isStopped("it is idle")},
		"needed half an hour ago and not in use: its pod goes": {
			Facts{Workspace: workspace(old, needed(30*time.Minute)), Pod: pod(time.Hour, isReady)},
			stops(RemovePod, "", 0)},
		"needed half an hour ago and in use: its pod stays": {
			Facts{Workspace: workspace(old, needed(30*time.Minute)), ActiveAt: now, Pod: pod(time.Hour, isReady)},
			isReadyFor(30 * time.Minute)},
		"needed while its pod is being removed: the pod is not used again": {
			Facts{Workspace: workspace(needed(0), isStopping), ActiveAt: now, Pod: pod(time.Hour, isReady)},
			stops(RemovePod, "being removed", 0)},
		"needed after its pod was removed: there is a new one": {
			Facts{Workspace: workspace(needed(0), isStopping), ActiveAt: now, Pod: pod(time.Hour, isReady,
				func(p *corev1.Pod) { p.UID = "next" })},
			isReadyFor(30 * time.Minute)},
		"needed half an hour ago, and still waited for: its pod is created": {
			Facts{Workspace: workspace(old, needed(30*time.Minute)), Awaited: true}, pends(CreatePod, "", 0)},
		"at work, but it has been without a pod for long: it is created when a call needs it": {
			Facts{Workspace: workspace(old, needed(30*time.Minute)), ActiveAt: now}, isStopped("it is idle")},
		"its claim stays, and is to go with it": {
			Facts{Workspace: workspace(), Claim: claim(corev1.ClaimBound), Retain: new(false)},
			pends(OwnClaim, "owner", 0)},
		"its claim stays, as it is to": {
			Facts{Workspace: workspace(), Claim: claim(corev1.ClaimBound), Retain: new(true)},
			pends(CreatePod, "", 0)},
		"stopped by its model while it is in use: its pod goes": {
			Facts{Workspace: workspace(old, needed(time.Minute)), ActiveAt: now, StoppedAt: new(micro(time.Second)),
				Pod: pod(time.Hour, isReady)},
			stops(RemovePod, "", 0)},
		"stopped by its model, without a pod: the next call starts it": {
			Facts{Workspace: workspace(old, needed(time.Minute)), ActiveAt: now, StoppedAt: new(micro(time.Minute))},
			isStopped("model has stopped")},
		"needed after its model has stopped it: its pod is created": {
			Facts{Workspace: workspace(old, needed(time.Second)), ActiveAt: now,
				StoppedAt: new(micro(time.Second + time.Microsecond))},
			pends(CreatePod, "", 0)},
		"needed again after it was stopped: its pod is created": {
			Facts{Workspace: workspace(old, needed(time.Second))}, pends(CreatePod, "", 0)},
		"never idle: nothing but an event has it looked at": {
			Facts{Workspace: workspace(old, idle(0)), Pod: pod(time.Hour, isReady)},
			isReadyFor(0)},
		"with an idle time of its own: that counts": {
			Facts{Workspace: workspace(old, idle(60), needed(61*time.Second)), Pod: pod(time.Hour)},
			stops(RemovePod, "", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			c.want.check(t, Decide(&c.facts))
		})
	}
}
