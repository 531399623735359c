// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
)

func named(w *v1beta1.Workspace) {
	w.Spec.Source = v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: "pod"}}
}

// said is a condition Ready that has been so for a while.
func said(status metav1.ConditionStatus, reason v1beta1.ConditionReason,
	since time.Duration) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) {
		w.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status, Reason: string(reason),
			LastTransitionTime: ago(since)}}
	}
}

func wasReadyBefore(w *v1beta1.Workspace) {
	said(metav1.ConditionTrue, v1beta1.ReasonWorkspaceReady, time.Hour)(w)
}

// controlled belongs to an object of that kind.
func controlled(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "x", UID: "x", Controller: new(true)}}
	}
}

// Security (a hostile model): cannot take the pod of another Workspace or Sandbox, or a generation pod, by podRef.
func TestPodRefPodIsUsedButNeverDeleted(t *testing.T) {
	asked := workspace(named)
	for name, c := range map[string]struct {
		facts Facts
		want  outcome
	}{
		"there is none yet": {Facts{Workspace: workspace(named, wasReadyBefore)},
			waitsFor(v1beta1.ReasonPodNotFound, "create it", Patience)},
		"there is none": {Facts{Workspace: asked}, fails(v1beta1.ReasonPodNotFound, "create it", 0)},
		"there is still none": {
			Facts{Workspace: workspace(named, said(metav1.ConditionFalse, v1beta1.ReasonPodNotFound, 0))},
			fails(v1beta1.ReasonPodNotFound, "create it", 0)},
		"it is ready": {Facts{Workspace: asked, Pod: pod(time.Hour, foreign, isReady)}, isReadyFor(29 * time.Minute)},
		"a controller has it": {Facts{Workspace: asked, Pod: pod(time.Hour, controlled("StatefulSet"), isReady)},
			isReadyFor(29 * time.Minute)},
		"it is another workspace's": {Facts{Workspace: asked, Pod: pod(time.Hour, controlled("Workspace"), isReady)},
			fails(v1beta1.ReasonPodNotFound, "belongs to Workspace x", 0)},
		"it is a generation pod": {Facts{Workspace: asked, Pod: pod(time.Hour, foreign, func(p *corev1.Pod) {
			p.Labels[podspec.LabelComponent] = podspec.ComponentGeneration
		})}, fails(v1beta1.ReasonPodNotFound, "is no workspace", 0)},
		"it is a sandbox's": {Facts{Workspace: asked, Pod: pod(time.Hour, controlled("Sandbox"))},
			fails(v1beta1.ReasonPodNotFound, "belongs to Sandbox x", 0)},
		"nobody has needed it for long": {Facts{Workspace: workspace(named, old), Pod: pod(time.Hour, foreign, isReady)},
			isReadyFor(0)},
		"it starts": {Facts{Workspace: asked, Pod: pod(time.Second, foreign, pulling)},
			starts(v1beta1.ReasonPodStarting, "no such image", StartPatience-time.Second)},
		"it was ready and does not answer": {Facts{Workspace: workspace(named, wasLost(10*time.Second)),
			Pod: pod(time.Hour, foreign, ready(corev1.ConditionFalse, 10*time.Second))},
			starts(v1beta1.ReasonPodLost, "does not answer", LostPatience-10*time.Second)},
		"it has not answered for long": {Facts{Workspace: workspace(named, wasLost(LostPatience)),
			Pod: pod(time.Hour, foreign, ready(corev1.ConditionFalse, LostPatience))},
			fails(v1beta1.ReasonPodLost, "create it again", 0)},
		"it still does not answer": {Facts{Workspace: workspace(named, wasReady,
			said(metav1.ConditionFalse, v1beta1.ReasonPodLost, 0)), Pod: pod(time.Hour, foreign,
			ready(corev1.ConditionFalse, LostPatience))},
			fails(v1beta1.ReasonPodLost, "create it again", 0)},
		"it ended": {Facts{Workspace: workspace(named, wasReadyBefore), Pod: pod(time.Hour, foreign, ended)},
			waitsFor(v1beta1.ReasonPodLost, "low on memory", LostPatience)},
		"it is being removed": {Facts{Workspace: workspace(named, wasReadyBefore),
			Pod: pod(time.Hour, foreign, deleted(-time.Hour))},
			waitsFor(v1beta1.ReasonPodLost, "being removed", StartPatience)},
		"it is not to be used": {Facts{Workspace: workspace(named, suspended), Pod: pod(time.Hour, foreign, isReady)},
			isStopped("spec.suspend")},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			got := Decide(&c.facts)
			c.want.check(t, got)
			uses := c.want.reason == v1beta1.ReasonWorkspaceReady
			if uses && !c.facts.NamesPod() || !uses && got.Phase == v1beta1.WorkspacePhaseReady {
				t.Errorf("its status names its pod: %t", c.facts.NamesPod())
			}
		})
	}
}

func ofPool(w *v1beta1.Workspace) {
	w.Spec.Source = v1beta1.WorkspaceSource{WarmPoolRef: &v1beta1.WarmPoolReference{Name: "pool"}}
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
	const runs, rests = sandboxes.SandboxOperatingModeRunning, sandboxes.SandboxOperatingModeSuspended
	wanted, idling := workspace(ofPool), workspace(ofPool, old)
	resting := workspace(ofPool, said(metav1.ConditionTrue, v1beta1.ReasonWorkspaceStopped, time.Hour))
	going := workspace(ofPool, func(w *v1beta1.Workspace) { w.DeletionTimestamp = new(ago(0)) })
	its := controlled("Sandbox")
	for name, c := range map[string]struct {
		facts Facts
		want  outcome
	}{
		"the cluster has no agent-sandbox": {Facts{Workspace: wanted, Pool: &Pool{}},
			fails(v1beta1.ReasonAgentSandboxMissing, "install it", retry)},
		"its claim comes first": {Facts{Workspace: wanted, Pool: &Pool{Installed: true}},
			pends(CreateSandboxClaim, "claimed", 0)},
		"the claim is refused": {Facts{Workspace: wanted, Pool: &Pool{Installed: true}, Refused: "quota"},
			fails(v1beta1.ReasonPodRejected, "quota", retry)},
		"the claim is a stranger's": {Facts{Workspace: wanted, Pool: &Pool{Installed: true,
			Claim: sandboxClaim(func(c *pools.SandboxClaim) { c.OwnerReferences = nil })}},
			fails(v1beta1.ReasonNameConflict, "SandboxClaim claim", retry)},
		"the claim has no sandbox yet": {Facts{Workspace: resting,
			Pool: &Pool{Installed: true, Claim: sandboxClaim(unready)}},
			pends(Nothing, "there is no template", StartPatience)},
		"the claim has had no sandbox for long": {Facts{
			Workspace: workspace(ofPool, said(metav1.ConditionUnknown, v1beta1.ReasonPodStarting, StartPatience)),
			Pool:      &Pool{Installed: true, Claim: sandboxClaim(unready)}},
			fails(v1beta1.ReasonPodNotStarting, "there is no template", 0)},
		"its pod is ready": {Facts{Workspace: wanted, Pool: pool(runs), Pod: pod(time.Hour, its, isReady)},
			isReadyFor(29 * time.Minute)},
		"it has no pod yet": {Facts{Workspace: resting, Pool: pool(runs)},
			pends(Nothing, "Sandbox sandbox has no pod", StartPatience)},
		"nobody needs it": {Facts{Workspace: idling, Pool: pool(runs), Pod: pod(time.Hour, its, isReady)},
			stops(SuspendSandbox, "suspended", 0)},
		"it is being suspended": {Facts{Workspace: idling, Pool: pool(rests), Pod: pod(time.Hour, its,
			deleted(time.Second))},
			stops(Nothing, "suspended", 0)},
		"it is needed while it is being suspended": {Facts{Workspace: workspace(ofPool, needed(0), isStopping),
			Pool: pool(rests), Pod: pod(time.Hour, its, isReady)},
			stops(Nothing, "suspended", StopPatience-10*time.Second)},
		"it is needed, and has not been suspended in time": {Facts{Workspace: workspace(ofPool, isStopping,
			func(w *v1beta1.Workspace) { w.Status.Conditions[0].LastTransitionTime = ago(StopPatience) }),
			Pool: pool(rests), Pod: pod(time.Hour, its, isReady)},
			outcome{ResumeSandbox, v1beta1.WorkspacePhaseStarting, metav1.ConditionUnknown, v1beta1.ReasonPodStarting,
				"resumed", 0}},
		"it is suspended":          {Facts{Workspace: idling, Pool: pool(rests)}, isStopped("it is idle")},
		"nobody has needed it yet": {Facts{Workspace: idling, Pool: &Pool{Installed: true}}, isStopped("it is idle")},
		"it is needed again": {Facts{Workspace: wanted, Pool: pool(rests)},
			outcome{ResumeSandbox, v1beta1.WorkspacePhaseStarting, metav1.ConditionUnknown, v1beta1.ReasonPodStarting,
				"resumed", 0}},
		"it is needed while its pod is being removed": {Facts{Workspace: resting, Pool: pool(runs),
			Pod: pod(time.Hour, its, deleted(-time.Minute))},
			pends(Nothing, "is being removed", StartPatience)},
		"its pod does not answer": {Facts{Workspace: workspace(ofPool, wasLost(LostPatience)), Pool: pool(runs),
			Pod: pod(time.Hour, its, ready(corev1.ConditionFalse, LostPatience))},
			fails(v1beta1.ReasonPodLost, "see Sandbox sandbox", 0)},
		"its claim is being removed": {Facts{Workspace: resting, Pool: &Pool{Installed: true,
			Claim: sandboxClaim(func(c *pools.SandboxClaim) { c.DeletionTimestamp = new(ago(0)) })}},
			pends(Nothing, "is being removed", StartPatience)},
		"it goes with its chat": {Facts{Workspace: going, Pool: pool(runs), Pod: pod(time.Hour, its)}, isStopped("")},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Now = now
			c.want.check(t, Decide(&c.facts))
		})
	}
}

// of is a workspace of another chat, with a UID of its own.
func of(chat string, uid types.UID) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) { w.Name, w.UID, w.Spec.ChatRef.Name = chat, uid, chat }
}

// saidTaken is a status that says that the pod of that UID is another's.
func saidTaken(uid string) func(*v1beta1.Workspace) {
	return func(w *v1beta1.Workspace) {
		said(metav1.ConditionFalse, v1beta1.ReasonPodInUse, time.Hour)(w)
		w.Status.Phase, w.Status.Pod = v1beta1.WorkspacePhaseFailed, &v1beta1.WorkspacePod{Name: "pod", UID: uid}
	}
}

func TestPodNamedBySeveralWorkspacesServesOneChat(t *testing.T) {
	other := func(change ...func(*v1beta1.Workspace)) []v1beta1.Workspace {
		return []v1beta1.Workspace{*workspace(append([]func(*v1beta1.Workspace){named, of("first", "x")}, change...)...)}
	}
	later := func(w *v1beta1.Workspace) { w.CreationTimestamp = ago(time.Second) }
	its := isReadyFor(29 * time.Minute)
	another := func(says string) outcome { return fails(v1beta1.ReasonPodInUse, says, 0) }
	theirs := another("chat first")
	for name, c := range map[string]struct {
		own    *v1beta1.Workspace
		others []v1beta1.Workspace
		want   outcome
	}{
		"nobody else names it":          {workspace(named), nil, its},
		"another one named it before":   {workspace(named), other(old), theirs},
		"another one names it later":    {workspace(named), other(later), its},
		"another one works in it":       {workspace(named), other(later, wasReady), theirs},
		"this one works in it":          {workspace(named, wasReady), other(old), its},
		"another one is suspended":      {workspace(named), other(later, wasReady, suspended), theirs},
		"both work in it, as it seemed": {workspace(named, wasReady), other(old, wasReady), theirs},
		"at the same moment, by UID":    {workspace(named), other(), its},
		"another one, of a former pod":  {workspace(named), other(old, saidTaken("former")), theirs},
		"this one works in it, and another has said that it is not its own": {workspace(named, wasReady),
			other(old, saidTaken("p")), its},
		"another one has said that it is of somebody who is gone": {workspace(named), other(old, saidTaken("p")),
			another("recreate it")},
		"the one that had it is gone": {workspace(named, saidTaken("p")), nil, another("recreate it")},
		"the one that had it is gone, and there is a later one": {workspace(named, saidTaken("p")), other(later),
			another("recreate it")},
		"it was recreated": {workspace(named, saidTaken("former")), nil, its},
	} {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Workspace: c.own, Sharers: c.others, Now: now,
				Pod: pod(time.Hour, foreign, isReady)}
			c.want.check(t, Decide(&facts))
			if !facts.NamesPod() {
				t.Error("the status does not name the pod, so that this is forgotten")
			}
		})
	}
}
