// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package life

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podstate"
)

// Pool has the objects of a workspace of a SandboxWarmPool.
type Pool struct {
	// Installed is set if the cluster has agent-sandbox.
	Installed bool
	// Claim of the workspace's name; nil: there is none.
	Claim *pools.SandboxClaim
	// Sandbox of the claim; nil: there is none yet.
	Sandbox *sandboxes.Sandbox
}

func (p *Pool) isSuspended() bool {
	return p.Sandbox.Spec.OperatingMode == sandboxes.SandboxOperatingModeSuspended
}

// decideWarmPool makes the plan for a sandbox of a warm pool. agent-sandbox creates and removes its pods.
func decideWarmPool(f *Facts) Plan {
	switch {
	case !f.Pool.Installed:
		return failed(v1beta1.ReasonAgentSandboxMissing, "this cluster does not have agent-sandbox (agents.x-k8s.io/v1beta1"+
			" and extensions.agents.x-k8s.io/v1beta1), which warmPoolRef needs: install it").after(retry)
	case f.Pool.Claim != nil && !metav1.IsControlledBy(f.Pool.Claim, f.Workspace):
		return failed(v1beta1.ReasonNameConflict, "SandboxClaim "+f.Pool.Claim.Name+
			" has the name that this workspace's own needs: delete it").after(retry)
	case !f.needsPod() || f.suspendsFor() > 0:
		return suspend(f).after(f.suspendsFor())
	case f.Pool.Sandbox == nil:
		return claimSandbox(f)
	case f.Pool.isSuspended():
		return working(ResumeSandbox, v1beta1.WorkspacePhaseStarting, v1beta1.ReasonPodStarting, "its sandbox is resumed")
	case f.Pod == nil:
		return awaitSandbox(f, "Sandbox "+f.Pool.Sandbox.Name+" has no pod yet: "+
			readyMessage(f.Pool.Sandbox.Status.Conditions))
	case !f.Pod.DeletionTimestamp.IsZero():
		return awaitSandbox(f, "Pod "+f.Pod.Name+
			" is being removed, and the next one of its Sandbox is waited for")
	}
	return observeForeign(f, "agent-sandbox has not replaced it: see Sandbox "+f.Pool.Sandbox.Name)
}

// suspendsFor is how much longer a sandbox that is being suspended is not resumed; 0: it can be.
func (f *Facts) suspendsFor() time.Duration {
	if !f.isRemoving() {
		return 0
	}
	return max(0, StopPatience-f.Now.Sub(f.waitingSince()))
}

// suspend makes the plan for a sandbox that is not needed.
func suspend(f *Facts) Plan {
	switch {
	case f.Pool.Sandbox == nil || !f.Workspace.DeletionTimestamp.IsZero():
		return stopped(f)
	case !f.Pool.isSuspended():
		return stopping(SuspendSandbox, "its sandbox is being suspended")
	case f.Pod != nil:
		return stopping(Nothing, "its sandbox is being suspended")
	}
	return stopped(f)
}

// claimSandbox makes the plan for a workspace without a sandbox.
func claimSandbox(f *Facts) Plan {
	claim := f.Pool.Claim
	switch {
	case f.Refused != "":
		return failed(v1beta1.ReasonPodRejected, f.Refused).after(retry)
	case claim == nil:
		return pending(CreateSandboxClaim, "a sandbox is being claimed")
	case !claim.DeletionTimestamp.IsZero():
		return awaitSandbox(f, "SandboxClaim "+claim.Name+" is being removed")
	}
	return awaitSandbox(f, "SandboxClaim "+claim.Name+" has no sandbox yet: "+
		readyMessage(claim.Status.Conditions))
}

// awaitSandbox waits for agent-sandbox.
func awaitSandbox(f *Facts, message string) Plan {
	return awaitOthers(f, v1beta1.ReasonPodStarting, v1beta1.ReasonPodNotStarting, StartPatience, message)
}

// readyMessage is the message of the condition Ready.
func readyMessage(conditions []metav1.Condition) string {
	condition := meta.FindStatusCondition(conditions, sandboxes.SandboxConditionReady.String())
	if condition == nil {
		return "agent-sandbox has not said why"
	}
	return podstate.Words(condition.Reason, condition.Message)
}
