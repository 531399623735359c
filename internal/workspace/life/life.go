// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package life decides when a workspace gets a pod, when the pod is removed, and what the status is. It is pure.
package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
)

const (
	// Patience is how long a template may be missing before the workspace has failed: manifests come object by object.
	Patience = 10 * time.Second
	// StartPatience is how long a pod may take to be ready before the workspace has failed: toolchain images are large.
	StartPatience = 5 * time.Minute
	// LostPatience is how long a pod may be unready before it is replaced: the kubelet restarts a container sooner, and
	// Kubernetes reports a lost node after 40 s.
	LostPatience = 60 * time.Second
	// StopPatience is how long a pod may take to stop after its grace period before its deletion is forced.
	StopPatience = 30 * time.Second

	// retry is when a refused request is made again: there is no event when a quota or a policy changes, or when another
	// object of the name is gone.
	retry = 10 * time.Second
	// forever is longer than any process lives.
	forever = 10 * 365 * 24 * time.Hour

	// AnnotationWorkspace on a claim is the UID of its workspace: a retained claim has no owner.
	AnnotationWorkspace = "parley.dev/workspace-uid"
	// AnnotationGeneration on a pod is the generation of the workspace that it was made from.
	AnnotationGeneration = "parley.dev/workspace-generation"
)

// Act is the next request to the API server.
type Act string

// The acts.
const (
	Nothing            Act = ""
	CreateClaim        Act = "CreateClaim"
	OwnClaim           Act = "OwnClaim" // add or remove the owner of the claim
	CreatePod          Act = "CreatePod"
	RemovePod          Act = "RemovePod" // delete the pod with its grace period
	ForcePod           Act = "ForcePod"  // delete the pod without its kubelet
	CreateSandboxClaim Act = "CreateSandboxClaim"
	SuspendSandbox     Act = "SuspendSandbox"
	ResumeSandbox      Act = "ResumeSandbox"
)

// Facts about a workspace.
type Facts struct {
	Workspace *v1beta1.Workspace
	// TemplateMissing is set if there is no such template. TemplateError says what is wrong with it, or with a value.
	TemplateMissing bool
	TemplateError   string
	// NeedsClaim is set if the files outlive the pod.
	NeedsClaim bool

	// Pod of the workspace: the one of its name, that of its sandbox, or the one that podRef names; nil: there is none.
	Pod *corev1.Pod
	// Sharers are the other workspaces whose podRef names that pod.
	Sharers []v1beta1.Workspace
	// Claim of the workspace's name; nil: there is none.
	Claim *corev1.PersistentVolumeClaim
	// ClaimDiffers is set if the claim is smaller, or of another class, than the source says now.
	ClaimDiffers bool
	// Pool has the objects of a warm pool; nil: the source is none.
	Pool *Pool
	// Refused is why the API server refused RefusedAct.
	Refused    string
	RefusedAct Act

	// ActiveAt is when a chat of the family was last active: now, if one is; zero: none was.
	ActiveAt time.Time
	// Awaited is set if a chat of the family waits for the workspace.
	Awaited bool
	// Retain is whether the chat retains the storage; nil: there is no chat.
	Retain *bool
	// StoppedAt is when the model last stopped the workspace; nil: never.
	StoppedAt *metav1.MicroTime
	Now       time.Time
}

// Plan for a workspace.
type Plan struct {
	// Act to perform before the next decision.
	Act     Act
	Summary conditions.Summary
	Phase   v1beta1.WorkspacePhase
	// After is when to decide again without an event; zero: never.
	After time.Duration
}

// Deadline is when to decide again, a moment after the facts change; zero: never.
func (p Plan) Deadline() time.Duration {
	if p.After <= 0 {
		return 0
	}
	return p.After + 50*time.Millisecond
}

func (p Plan) after(d time.Duration) Plan {
	p.After = d
	return p
}

// Decide makes the plan for a workspace.
func Decide(f *Facts) Plan {
	switch source := &f.Workspace.Spec.Source; {
	case source.PodRef != nil:
		return decidePodRef(f)
	case source.WarmPoolRef != nil:
		return decideWarmPool(f)
	}
	return decideTemplate(f)
}

func decideTemplate(f *Facts) Plan {
	switch {
	case f.foreignObject() != "":
		return failed(v1beta1.ReasonNameConflict,
			f.foreignObject()+" has the name that this workspace's own needs: delete it").
			after(retry)
	case f.hasWrongOwner():
		return pending(OwnClaim, "the owner of its storage is being set")
	case f.Pod != nil && !f.Pod.DeletionTimestamp.IsZero():
		return awaitPodRemoval(f)
	case f.Pod != nil && (f.isRemoving() || !f.needsPod()):
		return stopping(RemovePod, "its pod is being removed")
	case f.Pod != nil:
		return superviseOwn(f)
	case f.needsPod():
		return start(f)
	}
	return stopped(f)
}

// isRemoving reports whether the status says that this pod is being removed. Its removal may be under way, so it is not
// used again, even if it is needed now.
func (f *Facts) isRemoving() bool {
	status := &f.Workspace.Status
	return f.Pod != nil && status.Phase == v1beta1.WorkspacePhaseStopping && status.Pod != nil &&
		status.Pod.UID == string(f.Pod.UID)
}

// hasWrongOwner reports whether the owner of the claim does not follow the deletion policy.
func (f *Facts) hasWrongOwner() bool {
	return f.Claim != nil && f.Retain != nil && f.Workspace.DeletionTimestamp.IsZero() &&
		metav1.IsControlledBy(f.Claim, f.Workspace) == *f.Retain
}

func (f *Facts) needsPod() bool {
	return f.Workspace.DeletionTimestamp.IsZero() && !f.Workspace.Spec.Suspend &&
		(f.Workspace.IsCopying() || !f.isStopped() && f.idleIn() != 0)
}

// isStopped reports whether the model has stopped the workspace, and no call has needed it since.
func (f *Facts) isStopped() bool {
	needed := f.Workspace.Spec.NeededAt
	return f.StoppedAt != nil && (needed == nil || !needed.After(f.StoppedAt.Time))
}

// idleIn is how long an unused workspace keeps its pod; 0: it is idle.
func (f *Facts) idleIn() time.Duration {
	seconds := f.Workspace.Spec.Source.IdleSecondsOrDefault()
	idle := time.Duration(seconds) * time.Second
	if seconds == 0 {
		return forever
	}
	if f.Awaited { // However long ago that was said.
		return idle
	}
	since := f.Workspace.CreationTimestamp.Time
	if needed := f.Workspace.Spec.NeededAt; needed != nil && needed.After(since) {
		since = needed.Time
	}
	if f.Pod != nil && f.ActiveAt.After(since) { // An active chat may not need a pod.
		since = f.ActiveAt
	}
	return max(0, idle-f.Now.Sub(since))
}

// foreignObject is an object with a name of the workspace that belongs to another one; empty: there is none.
func (f *Facts) foreignObject() string {
	switch {
	case f.Pod != nil && !f.OwnsPod():
		return "Pod " + f.Pod.Name
	case f.Claim != nil && !f.OwnsClaim():
		return "PersistentVolumeClaim " + f.Claim.Name
	}
	return ""
}

// OwnsPod reports whether the pod is that of the workspace's template or sandbox.
func (f *Facts) OwnsPod() bool {
	switch {
	case f.Pod == nil:
		return false
	case f.Pool != nil:
		return f.Pool.Sandbox != nil && metav1.IsControlledBy(f.Pod, f.Pool.Sandbox)
	}
	return metav1.IsControlledBy(f.Pod, f.Workspace)
}

// NamesPod reports whether the status names the pod: the workspace's own, or the one of podRef, even if another chat
// uses it.
func (f *Facts) NamesPod() bool {
	if f.Workspace.Spec.Source.PodRef != nil {
		return f.Pod != nil && f.notOffered() == ""
	}
	return f.OwnsPod()
}

// OwnsClaim reports whether the claim is the workspace's own.
func (f *Facts) OwnsClaim() bool {
	return f.Claim != nil && f.Claim.Annotations[AnnotationWorkspace] == string(f.Workspace.UID)
}

// start plans the pod of a workspace that has none.
func start(f *Facts) Plan {
	switch {
	case f.copyBackoff() > 0:
		return failed(v1beta1.ReasonFilesNotCopied, f.failedCopy().Message).after(f.copyBackoff())
	case f.TemplateMissing:
		return awaitTemplate(f)
	case f.TemplateError != "":
		return failed(v1beta1.ReasonTemplateInvalid,
			"PodTemplate "+f.Workspace.Spec.Source.PodTemplateRef.Name+": "+f.TemplateError)
	case f.Refused != "" && f.RefusedAct == CreateClaim:
		return failed(v1beta1.ReasonStorageRejected, f.Refused).after(retry)
	case f.Refused != "":
		return failed(v1beta1.ReasonPodRejected, f.Refused).after(retry)
	case f.Claim != nil:
		return startWithClaim(f)
	case f.NeedsClaim:
		return pending(CreateClaim, "its storage is being created")
	}
	return pending(CreatePod, "its pod is being created")
}

func startWithClaim(f *Facts) Plan {
	switch {
	case !f.Claim.DeletionTimestamp.IsZero():
		return awaitClaimRemoval(f)
	case f.Claim.Status.Phase == corev1.ClaimLost:
		return failed(v1beta1.ReasonStorageLost, "the volume of PersistentVolumeClaim "+f.Claim.Name+
			" is gone, and the files with it: delete the claim to begin with an empty one")
	case f.ClaimDiffers && f.Workspace.IsCopying(): // It has no files of its own yet.
		return failed(v1beta1.ReasonStorageRejected, "PersistentVolumeClaim "+f.Claim.Name+" is smaller, or of another "+
			"storage class, than spec.source says now: delete it, and a new one is created")
	}
	return pending(CreatePod, "its pod is being created")
}

// awaitClaimRemoval waits for the removal of a claim: a pod that uses it, or is created before it is gone, is never
// scheduled.
func awaitClaimRemoval(f *Facts) Plan {
	if left := StartPatience - f.Now.Sub(f.Claim.DeletionTimestamp.Time); left > 0 {
		return pending(Nothing, "its storage is being removed").after(left)
	}
	return failed(v1beta1.ReasonStorageLost, "PersistentVolumeClaim "+f.Claim.Name+
		" is being removed, and something keeps it: end what uses it, and see its finalizers")
}

func awaitTemplate(f *Facts) Plan {
	message := "there is no PodTemplate " + f.Workspace.Spec.Source.PodTemplateRef.Name + " with the label " +
		v1beta1.LabelWorkspaceTemplate + "=true in this namespace: create it, or name another one"
	if left := Patience - f.Now.Sub(f.Workspace.CreationTimestamp.Time); left > 0 {
		return working(Nothing, v1beta1.WorkspacePhasePending, v1beta1.ReasonTemplateNotFound, message).after(left)
	}
	return failed(v1beta1.ReasonTemplateNotFound, message)
}

// awaitPodRemoval waits for the removal of a pod. Its deletion time is the end of its grace period.
func awaitPodRemoval(f *Facts) Plan {
	if left := f.Pod.DeletionTimestamp.Add(StopPatience).Sub(f.Now); left > 0 {
		return stopping(Nothing, "its pod is being removed").after(left)
	}
	return stopping(ForcePod, "node "+f.Pod.Spec.NodeName+" has not removed its pod in time: it is removed by force").
		after(retry) // A finalizer may keep it.
}

// stopped is the plan of a workspace that has no pod and needs none.
func stopped(f *Facts) Plan {
	why := "it is idle and has no pod; the next call that needs it starts it"
	if f.isStopped() {
		why = "it has no pod, because its model has stopped it; the next call that needs it starts it"
	}
	if f.Workspace.Spec.Suspend {
		why = "it has no pod, and gets none until spec.suspend is false"
	}
	return Plan{Phase: v1beta1.WorkspacePhaseStopped, Summary: conditions.Done(v1beta1.ReasonWorkspaceStopped, why)}
}

func pending(act Act, message string) Plan {
	return working(act, v1beta1.WorkspacePhasePending, v1beta1.ReasonPodStarting, message)
}

func stopping(act Act, message string) Plan {
	return working(act, v1beta1.WorkspacePhaseStopping, v1beta1.ReasonPodStopping, message)
}

func working(act Act, phase v1beta1.WorkspacePhase, reason v1beta1.ConditionReason, message string) Plan {
	return Plan{Act: act, Summary: conditions.Working(reason, message), Phase: phase}
}

func failed(reason v1beta1.ConditionReason, message string) Plan {
	return Plan{Summary: conditions.Failed(reason, message), Phase: v1beta1.WorkspacePhaseFailed}
}
