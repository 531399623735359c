// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podspec"
)

func named(w *v1alpha1.Workspace) {
	w.Spec.Source = v1alpha1.WorkspaceSource{PodRef: &v1alpha1.WorkspacePodReference{Name: "pod"}}
}

// said is a condition Ready that has been so for a while.
func said(status metav1.ConditionStatus, reason v1alpha1.ConditionReason,
	since time.Duration) func(*v1alpha1.Workspace) {
	return func(w *v1alpha1.Workspace) {
		w.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: string(reason),
			LastTransitionTime: ago(since)}}
	}
}

func strangers(p *corev1.Pod) { p.OwnerReferences = nil }

// controlled belongs to an object of that kind.
func controlled(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "x", UID: "x", Controller: new(true)}}
	}
}

// outcome is what a test expects of a plan.
type outcome struct {
	act    Act
	phase  v1alpha1.WorkspacePhase
	ready  metav1.ConditionStatus
	reason v1alpha1.ConditionReason
	says   string
	after  time.Duration
}

func (o outcome) check(t *testing.T, p Plan) {
	t.Helper()
	if p.Act != o.act || p.Phase != o.phase || p.Summary.Ready != o.ready || p.Summary.Reason != o.reason ||
		!strings.Contains(p.Summary.Message, o.says) || p.After != o.after {
		t.Errorf("got %+v\nwant %+v", p, o)
	}
}

func TestPodRefPodIsUsedButNeverDeleted(t *testing.T) {
	const pending, failed = v1alpha1.WorkspacePhasePending, v1alpha1.WorkspacePhaseFailed
	is, unknown, no := metav1.ConditionTrue, metav1.ConditionUnknown, metav1.ConditionFalse
	asked := workspace(named)
	for name, c := range map[string]struct {
		facts Facts
		want  outcome
	}{
		"there is none yet": {Facts{Workspace: workspace(named, said(is, v1alpha1.ReasonWorkspaceReady, time.Hour))},
			outcome{Nothing, pending, unknown, v1alpha1.ReasonPodNotFound, "create it", Patience}},
		"there is none": {Facts{Workspace: asked},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodNotFound, "create it", 0}},
		"there is still none": {Facts{Workspace: workspace(named, said(no, v1alpha1.ReasonPodNotFound, 0))},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodNotFound, "create it", 0}},
		"it is ready": {Facts{Workspace: asked, Pod: pod(time.Hour, strangers, ready(corev1.ConditionTrue, time.Minute))},
			outcome{Nothing, v1alpha1.WorkspacePhaseReady, is, v1alpha1.ReasonWorkspaceReady, "pod", 29 * time.Minute}},
		"a controller that replaces it has it": {Facts{Workspace: asked, Pod: pod(time.Hour, controlled("StatefulSet"),
			ready(corev1.ConditionTrue, time.Minute))},
			outcome{Nothing, v1alpha1.WorkspacePhaseReady, is, v1alpha1.ReasonWorkspaceReady, "pod", 29 * time.Minute}},
		"it is another workspace's": {Facts{Workspace: asked, Pod: pod(time.Hour, controlled("Workspace"),
			ready(corev1.ConditionTrue, time.Minute))},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodNotFound, "belongs to Workspace x", 0}},
		"it is a generation pod": {Facts{Workspace: asked, Pod: pod(time.Hour, strangers, func(p *corev1.Pod) {
			p.Labels[podspec.LabelComponent] = podspec.ComponentGeneration
		})}, outcome{Nothing, failed, no, v1alpha1.ReasonPodNotFound, "is no workspace", 0}},
		"it is a sandbox's": {Facts{Workspace: asked, Pod: pod(time.Hour, controlled("Sandbox"))},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodNotFound, "belongs to Sandbox x", 0}},
		"nobody has needed it for long": {Facts{Workspace: workspace(named, old), Pod: pod(time.Hour, strangers,
			ready(corev1.ConditionTrue, time.Minute))},
			outcome{Nothing, v1alpha1.WorkspacePhaseReady, is, v1alpha1.ReasonWorkspaceReady, "pod", 0}},
		"it starts": {Facts{Workspace: asked, Pod: pod(time.Second, strangers, pulling)},
			outcome{Nothing, v1alpha1.WorkspacePhaseStarting, unknown, v1alpha1.ReasonPodStarting, "no such image",
				StartPatience - time.Second}},
		"it was ready and does not answer": {Facts{Workspace: workspace(named, wasReady), Pod: pod(time.Hour, strangers,
			ready(corev1.ConditionFalse, 10*time.Second))},
			outcome{Nothing, v1alpha1.WorkspacePhaseStarting, unknown, v1alpha1.ReasonPodLost, "does not answer",
				LostPatience - 10*time.Second}},
		"it has not answered for long": {Facts{Workspace: workspace(named, wasReady), Pod: pod(time.Hour, strangers,
			ready(corev1.ConditionFalse, LostPatience))},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodLost, "create it again", 0}},
		"it ended": {Facts{Workspace: workspace(named, said(is, v1alpha1.ReasonWorkspaceReady, time.Hour)),
			Pod: pod(time.Hour, strangers, ended)},
			outcome{Nothing, pending, unknown, v1alpha1.ReasonPodLost, "low on memory", LostPatience}},
		"it is being removed": {Facts{Workspace: workspace(named, said(is, v1alpha1.ReasonWorkspaceReady, time.Hour)),
			Pod: pod(time.Hour, strangers, deleted(-time.Hour))},
			outcome{Nothing, pending, unknown, v1alpha1.ReasonPodLost, "being removed", StartPatience}},
		"it is not to be used": {Facts{Workspace: workspace(named, suspended), Pod: pod(time.Hour, strangers,
			ready(corev1.ConditionTrue, time.Minute))},
			outcome{Nothing, v1alpha1.WorkspacePhaseStopped, is, v1alpha1.ReasonWorkspaceStopped, "spec.suspend", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			got := Decide(&c.facts)
			c.want.check(t, got)
			uses := c.want.reason == v1alpha1.ReasonWorkspaceReady
			if uses && !c.facts.NamesPod() || !uses && got.Phase == v1alpha1.WorkspacePhaseReady {
				t.Errorf("its status names its pod: %t", c.facts.NamesPod())
			}
		})
	}
}

func ofPool(w *v1alpha1.Workspace) {
	w.Spec.Source = v1alpha1.WorkspaceSource{WarmPoolRef: &v1alpha1.WarmPoolReference{Name: "pool"}}
}

func sandboxClaim(change ...func(*pools.SandboxClaim)) *pools.SandboxClaim {
	c := &pools.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "claim", OwnerReferences: owned()}}
	for _, change := range change {
		change(c)
	}
	return c
}

func unready(c *pools.SandboxClaim) {
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "TemplateNotFound",
		Message: "there is no template"}}
}

// pool has a sandbox in that mode.
func pool(mode sandboxes.SandboxOperatingMode) *Pool {
	return &Pool{Installed: true, Claim: sandboxClaim(), Sandbox: &sandboxes.Sandbox{
		ObjectMeta: metav1.ObjectMeta{Name: "sandbox", UID: "x"}, Spec: sandboxes.SandboxSpec{OperatingMode: mode}}}
}

func TestLifecycleOfWarmPoolSandboxWorkspace(t *testing.T) {
	const pending, failed = v1alpha1.WorkspacePhasePending, v1alpha1.WorkspacePhaseFailed
	const runs, rests = sandboxes.SandboxOperatingModeRunning, sandboxes.SandboxOperatingModeSuspended
	is, unknown, no := metav1.ConditionTrue, metav1.ConditionUnknown, metav1.ConditionFalse
	wanted, idling := workspace(ofPool), workspace(ofPool, old)
	resting := workspace(ofPool, said(is, v1alpha1.ReasonWorkspaceStopped, time.Hour))
	going := workspace(ofPool, func(w *v1alpha1.Workspace) { w.DeletionTimestamp = new(ago(0)) })
	its := controlled("Sandbox")
	for name, c := range map[string]struct {
		facts Facts
		want  outcome
	}{
		"the cluster has no agent-sandbox": {Facts{Workspace: wanted, Pool: &Pool{}},
			outcome{Nothing, failed, no, v1alpha1.ReasonAgentSandboxMissing, "install it", retry}},
		"its claim comes first": {Facts{Workspace: wanted, Pool: &Pool{Installed: true}},
			outcome{CreateSandboxClaim, pending, unknown, v1alpha1.ReasonPodStarting, "claimed", 0}},
		"the claim is refused": {Facts{Workspace: wanted, Pool: &Pool{Installed: true}, Refused: "quota"},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodRefused, "quota", retry}},
		"the claim is a stranger's": {Facts{Workspace: wanted, Pool: &Pool{Installed: true,
			Claim: sandboxClaim(func(c *pools.SandboxClaim) { c.OwnerReferences = nil })}},
			outcome{Nothing, failed, no, v1alpha1.ReasonNameTaken, "SandboxClaim claim", retry}},
		"the claim has no sandbox yet": {Facts{Workspace: resting,
			Pool: &Pool{Installed: true, Claim: sandboxClaim(unready)}},
			outcome{Nothing, pending, unknown, v1alpha1.ReasonPodStarting, "there is no template", StartPatience}},
		"the claim has had no sandbox for long": {Facts{Workspace: workspace(ofPool, said(unknown, v1alpha1.ReasonPodStarting,
			StartPatience)), Pool: &Pool{Installed: true, Claim: sandboxClaim(unready)}},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodNotStarting, "there is no template", 0}},
		"its pod is ready": {Facts{Workspace: wanted, Pool: pool(runs), Pod: pod(time.Hour, its,
			ready(corev1.ConditionTrue, time.Hour))},
			outcome{Nothing, v1alpha1.WorkspacePhaseReady, is, v1alpha1.ReasonWorkspaceReady, "pod", 29 * time.Minute}},
		"it has no pod yet": {Facts{Workspace: resting, Pool: pool(runs)},
			outcome{Nothing, pending, unknown, v1alpha1.ReasonPodStarting, "Sandbox sandbox has no pod", StartPatience}},
		"nobody needs it": {Facts{Workspace: idling, Pool: pool(runs), Pod: pod(time.Hour, its,
			ready(corev1.ConditionTrue, time.Hour))},
			outcome{SuspendSandbox, v1alpha1.WorkspacePhaseStopping, unknown, v1alpha1.ReasonPodStopping, "suspended", 0}},
		"it is being suspended": {Facts{Workspace: idling, Pool: pool(rests), Pod: pod(time.Hour, its,
			deleted(time.Second))},
			outcome{Nothing, v1alpha1.WorkspacePhaseStopping, unknown, v1alpha1.ReasonPodStopping, "suspended", 0}},
		"it is suspended": {Facts{Workspace: idling, Pool: pool(rests)},
			outcome{Nothing, v1alpha1.WorkspacePhaseStopped, is, v1alpha1.ReasonWorkspaceStopped, "it is idle", 0}},
		"nobody has needed it yet": {Facts{Workspace: idling, Pool: &Pool{Installed: true}},
			outcome{Nothing, v1alpha1.WorkspacePhaseStopped, is, v1alpha1.ReasonWorkspaceStopped, "it is idle", 0}},
		"it is needed again": {Facts{Workspace: wanted, Pool: pool(rests)},
			outcome{ResumeSandbox, v1alpha1.WorkspacePhaseStarting, unknown, v1alpha1.ReasonPodStarting, "resumed", 0}},
		"it is needed while its pod is being removed": {Facts{Workspace: resting, Pool: pool(runs),
			Pod: pod(time.Hour, its, deleted(-time.Minute))},
			outcome{Nothing, pending, unknown, v1alpha1.ReasonPodStarting, "is being removed", StartPatience}},
		"its pod does not answer": {Facts{Workspace: workspace(ofPool, wasReady), Pool: pool(runs),
			Pod: pod(time.Hour, its, ready(corev1.ConditionFalse, LostPatience))},
			outcome{Nothing, failed, no, v1alpha1.ReasonPodLost, "see Sandbox sandbox", 0}},
		"its claim is being removed": {Facts{Workspace: resting, Pool: &Pool{Installed: true,
			Claim: sandboxClaim(func(c *pools.SandboxClaim) { c.DeletionTimestamp = new(ago(0)) })}},
			outcome{Nothing, pending, unknown, v1alpha1.ReasonPodStarting, "is being removed", StartPatience}},
		"it goes with its chat": {Facts{Workspace: going, Pool: pool(runs), Pod: pod(time.Hour, its)},
			outcome{Nothing, v1alpha1.WorkspacePhaseStopped, is, v1alpha1.ReasonWorkspaceStopped, "", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			c.want.check(t, Decide(&c.facts))
		})
	}
}
