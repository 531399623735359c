// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package life decides what becomes of a workspace: when it has a pod, when that pod goes, and what its status says. It
// is pure.
package life

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
)

const (
	// Patience is how long a template may be missing before a person is needed: manifests come object by object.
	Patience = 10 * time.Second
	// StartPatience is how long a pod may take until it is ready before a person is told: images of toolchains are large.
	StartPatience = 5 * time.Minute
	// LostPatience is how long a pod that was ready may not be, before it is replaced: the kubelet restarts a container in
	// less, and a node that does not answer has been gone for 40 s by then, which is Kubernetes' own default.
	LostPatience = 60 * time.Second
	// StopPatience is how long a pod may take to stop beyond its own grace before it is removed by force.
	StopPatience = 30 * time.Second
)

// Act is what has to be done next; Nothing, or one call of the API server.
type Act string

const (
	// Nothing is to be done.
	Nothing Act = ""
	// CreateClaim creates the claim of the storage.
	CreateClaim Act = "CreateClaim"
	// OwnClaim has the claim go with the workspace, or stay, as the deletion policy says now.
	OwnClaim Act = "OwnClaim"
	// CreatePod creates the pod.
	CreatePod Act = "CreatePod"
	// RemovePod deletes the pod, with its grace.
	RemovePod Act = "RemovePod"
	// ForcePod deletes the pod without waiting for its kubelet.
	ForcePod Act = "ForcePod"
	// CreateSandboxClaim asks the warm pool for a sandbox.
	CreateSandboxClaim Act = "CreateSandboxClaim"
	// SuspendSandbox has the sandbox stopped.
	SuspendSandbox Act = "SuspendSandbox"
	// ResumeSandbox has the sandbox started again.
	ResumeSandbox Act = "ResumeSandbox"
)

// Facts are what the life of a workspace depends on.
type Facts struct {
	// Workspace as it is.
	Workspace *v1alpha1.Workspace
	// TemplateMissing is true when there is no such template. TemplateError is what is wrong with it, or with a value.
	TemplateMissing bool
	TemplateError   string
	// NeedsClaim is true when the files outlive the pod.
	NeedsClaim bool

	// Pod of the workspace: the one of its name, that of its sandbox, or the one that podRef names; nil: there is none.
	Pod *corev1.Pod
	// Sharers are the other workspaces whose podRef names that pod.
	Sharers []v1alpha1.Workspace
	// Claim of the workspace's name; nil: there is none.
	Claim *corev1.PersistentVolumeClaim
	// Pool is what the workspace has of its warm pool; nil unless its source is one.
	Pool *Pool
	// Refused is what the API server has against the act that was to be done, and RefusedAct which it was.
	Refused    string
	RefusedAct Act

	// AtWorkAt is when a chat of the family was last at work: now, if one is; zero: none was.
	AtWorkAt time.Time
	// Retain is what the chat says now of the storage: whether it stays when the workspace goes; nil: there is no chat.
	Retain *bool
	// StoppedAt is when the model last stopped the workspace; nil: it never did.
	StoppedAt *metav1.MicroTime
	// Now is the time.
	Now time.Time
}

// Plan is what becomes of a workspace.
type Plan struct {
	// Act to do; then the decision is made again with what has come of it.
	Act Act
	// Summary of the conditions.
	Summary conditions.Summary
	// Phase for people.
	Phase v1alpha1.WorkspacePhase
	// After is when to look again although nothing has happened; zero: never.
	After time.Duration
}

// Decide says what becomes of the workspace.
func Decide(f *Facts) Plan {
	switch source := &f.Workspace.Spec.Source; {
	case source.PodRef != nil:
		return decidePodRef(f)
	case source.WarmPoolRef != nil:
		return decideWarmPool(f)
	}
	return decideTemplate(f)
}

// decideTemplate is what becomes of a workspace that is made from a template.
func decideTemplate(f *Facts) Plan {
	switch {
	case f.foreign() != "":
		return stalled(v1alpha1.ReasonNameTaken, f.foreign()+" has the name that this workspace's own needs: delete it",
			retry)
	case f.Claim != nil && f.Retain != nil && f.Workspace.DeletionTimestamp.IsZero() && f.claimGoes() == *f.Retain:
		return pending(OwnClaim, "the owner of its storage is being set")
	case f.Pod != nil && !f.Pod.DeletionTimestamp.IsZero():
		return awaitPodRemoval(f)
	case !f.runs():
		return stop(f)
	case f.Pod != nil:
		return superviseOwn(f)
	}
	return start(f)
}

// runs reports whether the workspace is to have a pod.
func (f *Facts) runs() bool {
	return f.Workspace.DeletionTimestamp.IsZero() && !f.Workspace.Spec.Suspend && !f.stopped() && f.idleIn() != 0
}

// stopped reports whether the model has stopped the workspace, and nothing has needed it since.
func (f *Facts) stopped() bool {
	needed := f.Workspace.Spec.NeededAt
	return f.StoppedAt != nil && (needed == nil || !needed.After(f.StoppedAt.Time))
}

// idleIn is the time after which nobody will have needed the workspace for as long as it is kept; 0: that is over.
func (f *Facts) idleIn() time.Duration {
	seconds := f.Workspace.Spec.Source.IdleSecondsOrDefault()
	idle := time.Duration(seconds) * time.Second
	if seconds == 0 {
		return forever
	}
	since := f.Workspace.CreationTimestamp.Time
	if needed := f.Workspace.Spec.NeededAt; needed != nil && needed.After(since) {
		since = needed.Time
	}
	if f.Pod != nil && f.AtWorkAt.After(since) { // That a chat is at work does not mean that it needs a pod.
		since = f.AtWorkAt
	}
	return max(0, idle-f.Now.Sub(since))
}

// forever is longer than any process lives.
const forever = 10 * 365 * 24 * time.Hour

// foreign names the object that has a name of the workspace's and is none of its own.
func (f *Facts) foreign() string {
	switch {
	case f.Pod != nil && !f.OwnsPod():
		return "Pod " + f.Pod.Name
	case f.Claim != nil && !f.OwnsClaim():
		return "PersistentVolumeClaim " + f.Claim.Name
	}
	return ""
}

// AnnotationWorkspace on a claim names the workspace by UID: a claim that is kept has no owner.
const AnnotationWorkspace = "parley.dev/workspace-uid"

// OwnsPod reports whether there is a pod, and it is the workspace's own: of its template, or of its sandbox.
func (f *Facts) OwnsPod() bool {
	switch {
	case f.Pod == nil:
		return false
	case f.Pool != nil:
		return f.Pool.Sandbox != nil && metav1.IsControlledBy(f.Pod, f.Pool.Sandbox)
	}
	return metav1.IsControlledBy(f.Pod, f.Workspace)
}

// Names reports whether there is a pod that the status is to name: the workspace's own, or the one that podRef names.
// It may not work in the latter, as the phase says.
func (f *Facts) Names() bool {
	if f.Workspace.Spec.Source.PodRef != nil {
		return f.Pod != nil && f.notOffered() == ""
	}
	return f.OwnsPod()
}

// OwnsClaim reports whether there is a claim, and it is the workspace's own.
func (f *Facts) OwnsClaim() bool {
	return f.Claim != nil && f.Claim.Annotations[AnnotationWorkspace] == string(f.Workspace.UID)
}

// claimGoes reports whether the claim goes with the workspace.
func (f *Facts) claimGoes() bool { return metav1.IsControlledBy(f.Claim, f.Workspace) }

// start is what a workspace without a pod does that is to have one.
func start(f *Facts) Plan {
	switch {
	case f.TemplateMissing:
		return awaitTemplate(f)
	case f.TemplateError != "":
		return stalled(v1alpha1.ReasonTemplateInvalid,
			"PodTemplate "+f.Workspace.Spec.Source.PodTemplateRef.Name+": "+f.TemplateError, 0)
	case f.Refused != "" && f.RefusedAct == CreateClaim:
		return stalled(v1alpha1.ReasonStorageRefused, f.Refused, retry)
	case f.Refused != "":
		return stalled(v1alpha1.ReasonPodRefused, f.Refused, retry)
	case f.Claim != nil:
		return startWithClaim(f)
	case f.NeedsClaim:
		return pending(CreateClaim, "its storage is being created")
	}
	return pending(CreatePod, "its pod is being created")
}

// retry is when the API server is asked again: nothing tells when a quota or a policy has changed, or when a stranger's
// object is gone.
const retry = 10 * time.Second

// startWithClaim is what a workspace does that has its claim, and is to have a pod.
func startWithClaim(f *Facts) Plan {
	switch {
	case !f.Claim.DeletionTimestamp.IsZero():
		return awaitClaimRemoval(f)
	case f.Claim.Status.Phase == corev1.ClaimLost:
		return stalled(v1alpha1.ReasonStorageLost, "the volume of PersistentVolumeClaim "+f.Claim.Name+
			" is gone, and the files with it: delete the claim to begin with an empty one", 0)
	}
	return pending(CreatePod, "its pod is being created")
}

// awaitClaimRemoval is what a workspace does whose claim is being removed: no pod is scheduled with that, nor with the
// next one of its name if it was created before.
func awaitClaimRemoval(f *Facts) Plan {
	if left := StartPatience - f.Now.Sub(f.Claim.DeletionTimestamp.Time); left > 0 {
		p := pending(Nothing, "its storage is being removed")
		p.After = left
		return p
	}
	return stalled(v1alpha1.ReasonStorageLost, "PersistentVolumeClaim "+f.Claim.Name+
		" is being removed, and something keeps it: end what uses it, and see its finalizers", 0)
}

func awaitTemplate(f *Facts) Plan {
	message := "there is no PodTemplate " + f.Workspace.Spec.Source.PodTemplateRef.Name + " with the label " +
		v1alpha1.LabelWorkspaceTemplate + "=true in this namespace: create it, or name another one"
	if left := Patience - f.Now.Sub(f.Workspace.CreationTimestamp.Time); left > 0 {
		return Plan{Phase: v1alpha1.WorkspacePhasePending, After: left,
			Summary: conditions.Working(v1alpha1.ReasonTemplateNotFound, message)}
	}
	return stalled(v1alpha1.ReasonTemplateNotFound, message, 0)
}

// stop is what a workspace does that is to have no pod.
func stop(f *Facts) Plan {
	if f.Pod != nil {
		return working(RemovePod, v1alpha1.WorkspacePhaseStopping, v1alpha1.ReasonPodStopping, "its pod is being removed")
	}
	return stoppedPlan(f)
}

// stoppedPlan is what a workspace says that has no pod and is to have none.
func stoppedPlan(f *Facts) Plan {
	why := "it is idle and has no pod; the next call that needs it starts it"
	if f.stopped() {
		why = "it has no pod, because its model has stopped it; the next call that needs it starts it"
	}
	if f.Workspace.Spec.Suspend {
		why = "it has no pod, and gets none until spec.suspend is false"
	}
	return Plan{Phase: v1alpha1.WorkspacePhaseStopped, Summary: conditions.Done(v1alpha1.ReasonWorkspaceStopped, why)}
}

// awaitPodRemoval is what becomes of a pod that is being removed.
func awaitPodRemoval(f *Facts) Plan {
	// The time of deletion is when its grace is over.
	left := f.Pod.DeletionTimestamp.Add(StopPatience).Sub(f.Now)
	if left <= 0 {
		p := working(ForcePod, v1alpha1.WorkspacePhaseStopping, v1alpha1.ReasonPodStopping, "node "+f.Pod.Spec.NodeName+
			" has not removed its pod in time: it is removed by force")
		p.After = retry // A finalizer may hold it.
		return p
	}
	p := working(Nothing, v1alpha1.WorkspacePhaseStopping, v1alpha1.ReasonPodStopping, "its pod is being removed")
	p.After = left
	return p
}

func pending(act Act, message string) Plan {
	return working(act, v1alpha1.WorkspacePhasePending, v1alpha1.ReasonPodStarting, message)
}

func working(act Act, phase v1alpha1.WorkspacePhase, reason v1alpha1.ConditionReason, message string) Plan {
	return Plan{Act: act, Summary: conditions.Working(reason, message), Phase: phase}
}

func stalled(reason v1alpha1.ConditionReason, message string, after time.Duration) Plan {
	return Plan{Summary: conditions.Failed(reason, message), Phase: v1alpha1.WorkspacePhaseFailed, After: after}
}
