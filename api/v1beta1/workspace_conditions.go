// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a Workspace's conditions.
const (
	// ReasonWorkspaceReady surfaces in Ready (True) when commands run in the workspace.
	ReasonWorkspaceReady ConditionReason = "WorkspaceReady"
	// ReasonWorkspaceStopped surfaces in Ready (True) when the workspace has no pod, because no one needs one.
	ReasonWorkspaceStopped ConditionReason = "WorkspaceStopped"
	// ReasonPodStarting surfaces in Ready (Unknown) and Reconciling (True) while the workspace's pod starts.
	ReasonPodStarting ConditionReason = "PodStarting"
	// ReasonPodStopping surfaces in Ready (Unknown) and Reconciling (True) while the workspace's pod is being removed.
	ReasonPodStopping ConditionReason = "PodStopping"
	// ReasonPodLost surfaces in Ready (Unknown) and Reconciling (True) when the workspace's pod failed, or its node does
	// not answer, until it is replaced. It is False and Stalled where others have to replace it and have not in time.
	ReasonPodLost ConditionReason = "PodLost"
	// ReasonPodNotStarting surfaces in Ready (False) and Stalled (True) when the workspace's pod has not started in time;
	// the message has the words of the scheduler or the kubelet.
	ReasonPodNotStarting ConditionReason = "PodNotStarting"
	// ReasonPodNotFound surfaces in Ready (False) and Stalled (True) when there is no Pod of the name that podRef has, or
	// it belongs to another workspace. For the first 10 s it is Unknown and Reconciling.
	ReasonPodNotFound ConditionReason = "PodNotFound"
	// ReasonPodInUse surfaces in Ready (False) and Stalled (True) when the Pod that podRef names is the workspace of
	// another chat of the namespace, which it stays until it is recreated.
	ReasonPodInUse ConditionReason = "PodInUse"
	// ReasonAgentSandboxMissing surfaces in Ready (False) and Stalled (True) while the cluster does not have
	// agent-sandbox, which warmPoolRef needs.
	ReasonAgentSandboxMissing ConditionReason = "AgentSandboxMissing"
	// ReasonPodRejected surfaces in Ready (False) and Stalled (True) while the API server refuses the workspace's pod or
	// SandboxClaim: a ResourceQuota, a LimitRange, Pod Security, a policy, or missing rights.
	ReasonPodRejected ConditionReason = "PodRejected"
	// ReasonStorageRejected surfaces in Ready (False) and Stalled (True) while the API server refuses the workspace's
	// PersistentVolumeClaim.
	ReasonStorageRejected ConditionReason = "StorageRejected"
	// ReasonStorageLost surfaces in Ready (False) and Stalled (True) when the volume behind the claim is gone, or when the
	// claim is being removed and something keeps it.
	ReasonStorageLost ConditionReason = "StorageLost"
	// ReasonTemplateNotFound surfaces in Ready (False) and Stalled (True) when there is no PodTemplate of the name that
	// has the label parley.dev/workspace-template=true. For the first 10 s it is Unknown and Reconciling.
	ReasonTemplateNotFound ConditionReason = "TemplateNotFound"
	// ReasonTemplateInvalid surfaces in Ready (False) and Stalled (True) when the PodTemplate, or a value for one of its
	// parameters, is wrong; the message says what and where.
	ReasonTemplateInvalid ConditionReason = "TemplateInvalid"
	// ReasonNameConflict surfaces in Ready (False) and Stalled (True) while another object has the name of the workspace's
	// pod, claim or SandboxClaim.
	ReasonNameConflict ConditionReason = "NameConflict"
)
