// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/test/kit/check"
)

func copies(w *v1beta1.Workspace) { w.Spec.CopyFrom = "source" }

func copied(w *v1beta1.Workspace) { copies(w); w.Status.CopiedFrom = "source" }

func corrected(w *v1beta1.Workspace) { w.Generation++ }

// copier is the pod that copies the files.
func copier(age time.Duration, phase corev1.PodPhase, change ...func(*corev1.Pod)) *corev1.Pod {
	p := pod(age, change...)
	p.Annotations = map[string]string{AnnotationGeneration: "0"}
	p.Spec.Containers, p.Status.Phase = []corev1.Container{{Name: "parley-copy"}}, phase
	return p
}

// crashed has failed to copy.
func crashed(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "parley-copy",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1,
			Reason: "Error", Message: "no space left on device\n\x1b[0m\n"}}}}
}

// copyFailed is a status that says since when and why the copy has failed.
func copyFailed(since time.Duration, why string) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) {
		copies(w)
		w.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: string(v1beta1.ReasonFilesNotCopied), LastTransitionTime: ago(since), Message: why}}
	}
}

func TestFilesAreCopiedBeforeTheWorkspaceRuns(t *testing.T) {
	copying := func(says string, after time.Duration) outcome {
		return waitsFor(v1beta1.ReasonFilesNotCopied, says, after)
	}
	for name, c := range map[string]struct {
		facts Facts
		want  outcome
	}{
		"no pod":           {Facts{Workspace: workspace(copies)}, pends(CreatePod, "being created", 0)},
		"no pod, and idle": {Facts{Workspace: workspace(copies, old)}, pends(CreatePod, "being created", 0)},
		"suspended":        {Facts{Workspace: workspace(copies, suspended)}, isStopped("spec.suspend")},
		"its storage is too small": {
			Facts{Workspace: workspace(copies), Claim: claim(corev1.ClaimBound), ClaimDiffers: true},
			fails(v1beta1.ReasonStorageRejected, "smaller, or of another storage class", 0)},
		"copied, and its storage is small": {
			Facts{Workspace: workspace(copied), Claim: claim(corev1.ClaimBound), ClaimDiffers: true},
			pends(CreatePod, "being created", 0)},
		"the pod has no node": {
			Facts{Workspace: workspace(copies), Pod: copier(time.Minute, corev1.PodPending, unscheduled)},
			starts(v1beta1.ReasonPodStarting, "0/3 nodes", 4*time.Minute)},
		"the pod does not start": {
			Facts{Workspace: workspace(copies), Pod: copier(StartPatience, corev1.PodPending, unscheduled)},
			fails(v1beta1.ReasonFilesNotCopied, "not started within 5m0s: Unschedulable: 0/3 nodes", 0)},
		"the pod copies": {
			// Its container has no probe, and so it is ready.
			Facts{Workspace: workspace(copies), Pod: copier(10*time.Minute, corev1.PodRunning, isReady)},
			copying("being copied in Pod pod", 20*time.Minute)},
		"the copy takes too long": {
			Facts{Workspace: workspace(copies), Pod: copier(CopyPatience, corev1.PodRunning, isReady)},
			fails(v1beta1.ReasonFilesNotCopied, "not copied within 30m0s", 0)},
		"the copy failed": {
			Facts{Workspace: workspace(copies), Pod: copier(time.Minute, corev1.PodFailed, crashed)},
			fails(v1beta1.ReasonFilesNotCopied, "retried: Error: no space left on device", 0)},
		"the pod was evicted": {
			Facts{Workspace: workspace(copies), Pod: copier(time.Minute, corev1.PodFailed, crashed, ended)},
			fails(v1beta1.ReasonFilesNotCopied, "retried: Evicted: low on memory", 0)},
		"the pod has copied": {
			Facts{Workspace: workspace(copies), Pod: copier(time.Minute, corev1.PodSucceeded)},
			copying("its files are copied", 0)},
		"the status says so": {
			Facts{Workspace: workspace(copied), Pod: copier(time.Minute, corev1.PodSucceeded)},
			stops(RemovePod, "that copied its files", 0)},
		"the copy is canceled": {
			Facts{Workspace: workspace(), Pod: copier(time.Minute, corev1.PodRunning, isReady)},
			stops(RemovePod, "that copied its files", 0)},
		"the source was corrected": {
			Facts{Workspace: workspace(copies, corrected), Pod: copier(time.Minute, corev1.PodPending, unscheduled)},
			stops(RemovePod, "spec.source has changed", 0)},
		"the source was corrected too late": {
			Facts{Workspace: workspace(copies, corrected), Pod: copier(time.Minute, corev1.PodSucceeded)},
			copying("its files are copied", 0)},
		"copied, and idle": {Facts{Workspace: workspace(copied, old)}, isStopped("it is idle")},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			c.want.check(t, Decide(&c.facts))
		})
	}
}

func TestOnlyAnEndedCopierHasCopied(t *testing.T) {
	for name, f := range map[string]Facts{
		"it runs":                {Pod: copier(0, corev1.PodRunning)},
		"it failed":              {Pod: copier(0, corev1.PodFailed)},
		"it is no copier":        {Pod: pod(0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		"it is another's":        {Pod: copier(0, corev1.PodSucceeded, foreign)},
		"there is none":          {},
		"it copied another time": {Pod: copier(0, corev1.PodSucceeded), Workspace: workspace()},
	} {
		if f.Workspace == nil {
			f.Workspace = workspace(copies)
		}
		check.Equal(t, name, false, f.Copied())
	}
	done := Facts{Workspace: workspace(copies), Pod: copier(0, corev1.PodSucceeded)}
	check.Equal(t, "it ended", true, done.Copied())
	check.Equal(t, "ready", metav1.ConditionUnknown, Decide(&done).Summary.Ready)
}

func failsAnd(act Act, says string) outcome {
	o := fails(v1beta1.ReasonFilesNotCopied, says, 0)
	o.act = act
	return o
}

// The pod that failed keeps the source's claim, and the next one gets the node that the source's pod has then.
func TestFailedCopyIsRetriedInAnotherPod(t *testing.T) {
	const failure = "its files cannot be copied, which is retried: "
	for name, pod := range map[string]*corev1.Pod{
		"it failed":          copier(time.Minute, corev1.PodFailed, crashed),
		"it has no node":     copier(StartPatience, corev1.PodPending, unscheduled),
		"it does not start":  copier(StartPatience, corev1.PodPending),
		"it failed silently": copier(time.Minute, corev1.PodFailed),
	} {
		reported := workspace(copies)
		conditions.Workspace(reported, Decide(&Facts{Workspace: reported, Pod: pod, Now: now}).Summary, now)
		why := reported.Status.Conditions[0].Message
		for says, c := range map[string]struct {
			says string
			want outcome
		}{
			"the status says so":           {why, failsAnd(RemovePod, failure)},
			"the status says another time": {failure, failsAnd(Nothing, failure)},
		} {
			t.Run(name+", and "+says, func(t *testing.T) {
				c.want.check(t, Decide(&Facts{Workspace: workspace(copyFailed(0, c.says)), Pod: pod, Now: now}))
			})
		}
	}
}

func TestFailedCopyIsRetriedLaterAndLater(t *testing.T) {
	created := func(since time.Duration) func(*v1beta1.Workspace) {
		return func(w *v1beta1.Workspace) { w.CreationTimestamp = ago(since) }
	}
	for name, c := range map[string]struct {
		workspace *v1beta1.Workspace
		want      outcome
	}{
		"the first time": {workspace(created(5*time.Second), copyFailed(4*time.Second, "why")),
			fails(v1beta1.ReasonFilesNotCopied, "why", 6*time.Second)},
		"tried for a minute": {workspace(created(2*time.Minute), copyFailed(59*time.Second, "why")),
			fails(v1beta1.ReasonFilesNotCopied, "why", 2*time.Second)},
		"after that minute": {workspace(created(2*time.Minute), copyFailed(time.Minute, "why")),
			pends(CreatePod, "being created", 0)},
		"tried for an hour": {workspace(created(time.Hour), copyFailed(time.Minute, "why")),
			fails(v1beta1.ReasonFilesNotCopied, "why", 4*time.Minute)},
		"the source was corrected": {workspace(created(time.Hour), copyFailed(time.Minute, "why"),
			corrected), pends(CreatePod, "being created", 0)},
		"the copy was canceled": {workspace(created(time.Minute), copyFailed(time.Second, "why"),
			func(w *v1beta1.Workspace) { w.Spec.CopyFrom = "" }), pends(CreatePod, "being created", 0)},
	} {
		t.Run(name, func(t *testing.T) { c.want.check(t, Decide(&Facts{Workspace: c.workspace, Now: now})) })
	}
}
