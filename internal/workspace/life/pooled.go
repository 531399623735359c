// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podstate"
)

// Pool is what a workspace has of its SandboxWarmPool.
type Pool struct {
	// Installed is true when the cluster has agent-sandbox.
	Installed bool
	// Claim of the workspace's name; nil: there is none.
	Claim *pools.SandboxClaim
	// Sandbox that the claim has got; nil: none yet.
	Sandbox *sandboxes.Sandbox
}

func (p *Pool) suspended() bool {
	return p.Sandbox.Spec.OperatingMode == sandboxes.SandboxOperatingModeSuspended
}

// decideWarmPool is what becomes of a workspace that is a sandbox of a warm pool. Its pods are agent-sandbox's to
// create and to remove.
func decideWarmPool(f *Facts) Plan {
	switch {
	case !f.Pool.Installed:
		return stalled(v1alpha1.ReasonAgentSandboxMissing, "this cluster does not have agent-sandbox "+
			"(agents.x-k8s.io/v1beta1 and extensions.agents.x-k8s.io/v1beta1), which warmPoolRef needs: install it", retry)
	case f.Pool.Claim != nil && !metav1.IsControlledBy(f.Pool.Claim, f.Workspace):
		return stalled(v1alpha1.ReasonNameTaken, "SandboxClaim "+f.Pool.Claim.Name+
			" has the name that this workspace's own needs: delete it", retry)
	case !f.runs():
		return suspend(f)
	case f.Pool.Sandbox == nil:
		return claimSandbox(f)
	case f.Pool.suspended():
		return working(ResumeSandbox, v1alpha1.WorkspacePhaseStarting, v1alpha1.ReasonPodStarting, "its sandbox is resumed")
	case f.Pod == nil:
		return awaitSandbox(f, "Sandbox "+f.Pool.Sandbox.Name+" has no pod yet: "+
			words(f.Pool.Sandbox.Status.Conditions, sandboxes.SandboxConditionReady.String()))
	case !f.Pod.DeletionTimestamp.IsZero():
		return awaitSandbox(f, "Pod "+f.Pod.Name+
			" is being removed, and the next one of its Sandbox is waited for")
	}
	return observeForeign(f, "agent-sandbox has not replaced it: see Sandbox "+f.Pool.Sandbox.Name)
}

// suspend is what a sandbox does that is not needed.
func suspend(f *Facts) Plan {
	switch {
	case f.Pool.Sandbox == nil || !f.Workspace.DeletionTimestamp.IsZero():
		return stoppedPlan(f)
	case !f.Pool.suspended():
		return working(SuspendSandbox, v1alpha1.WorkspacePhaseStopping, v1alpha1.ReasonPodStopping,
			"its sandbox is being suspended")
	case f.Pod != nil:
		return working(Nothing, v1alpha1.WorkspacePhaseStopping, v1alpha1.ReasonPodStopping, "its sandbox is being suspended")
	}
	return stoppedPlan(f)
}

// claimSandbox is what a workspace does that has no sandbox yet.
func claimSandbox(f *Facts) Plan {
	claim := f.Pool.Claim
	switch {
	case f.Refused != "":
		return stalled(v1alpha1.ReasonPodRefused, f.Refused, retry)
	case claim == nil:
		return pending(CreateSandboxClaim, "a sandbox is being claimed")
	case !claim.DeletionTimestamp.IsZero():
		return awaitSandbox(f, "SandboxClaim "+claim.Name+" is being removed")
	}
	return awaitSandbox(f, "SandboxClaim "+claim.Name+" has no sandbox yet: "+
		words(claim.Status.Conditions, sandboxes.SandboxConditionReady.String()))
}

// awaitSandbox is what a workspace says that waits for agent-sandbox to give it a pod.
func awaitSandbox(f *Facts, message string) Plan {
	return awaitOthers(f, v1alpha1.ReasonPodStarting, v1alpha1.ReasonPodNotStarting, StartPatience, message)
}

// words are those of a condition.
func words(of []metav1.Condition, kind string) string {
	condition := meta.FindStatusCondition(of, kind)
	if condition == nil {
		return "agent-sandbox has not said why"
	}
	return podstate.Words(condition.Reason, condition.Message)
}
