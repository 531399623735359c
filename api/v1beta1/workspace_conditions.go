// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a Workspace's conditions.
const (
	// ReasonWorkspaceReady surfaces in Ready (True) when commands run in the workspace.
	ReasonWorkspaceReady ConditionReason = "WorkspaceReady"
	// ReasonWorkspaceStopped surfaces in Ready (True) when the workspace has no pod: it is idle, stopped by its model, or
	// suspended. The next call that needs it starts it, unless it is suspended.
	ReasonWorkspaceStopped ConditionReason = "WorkspaceStopped"
	// ReasonPodStarting surfaces in Ready (Unknown) and Reconciling (True) while the storage or the pod is created, or the
	// pod starts; the message contains the words of the scheduler or the kubelet, or the name of the pod whose Events
	// contain them.
	ReasonPodStarting ConditionReason = "PodStarting"
	// ReasonPodStopping surfaces in Ready (Unknown) and Reconciling (True) while the pod is removed; by force if its node
	// has not removed it 30 s after its grace period.
	ReasonPodStopping ConditionReason = "PodStopping"
	// ReasonPodLost surfaces in Ready (Unknown) and Reconciling (True) when the pod ended, or does not answer; it is
	// replaced after a minute. It is False and Stalled for a pod of a warm pool or of podRef that was not replaced within
	// a minute.
	ReasonPodLost ConditionReason = "PodLost"
	// ReasonPodNotStarting surfaces in Ready (False) and Stalled (True) when the pod has not started within 5 minutes; the
	// message contains the reason. The workspace is ready as soon as the pod is.
	ReasonPodNotStarting ConditionReason = "PodNotStarting"
	// ReasonPodNotFound surfaces in Ready (False) and Stalled (True) when the Pod that podRef names does not exist, or
	// belongs to another workspace. For the first 10 s it is Unknown and Reconciling.
	ReasonPodNotFound ConditionReason = "PodNotFound"
	// ReasonPodInUse surfaces in Ready (False) and Stalled (True) when the Pod that podRef names is the workspace of the
	// chat that needed it first. Name another Pod, or delete that chat and recreate the Pod.
	ReasonPodInUse ConditionReason = "PodInUse"
	// ReasonAgentSandboxMissing surfaces in Ready (False) and Stalled (True) while the cluster does not have
	// agent-sandbox, which warmPoolRef needs. It is checked again every 10 s.
	ReasonAgentSandboxMissing ConditionReason = "AgentSandboxMissing"
	// ReasonPodRejected surfaces in Ready (False) and Stalled (True) while the API server refuses the pod or the
	// SandboxClaim; the message has its words. It is retried every 10 s.
	ReasonPodRejected ConditionReason = "PodRejected"
	// ReasonStorageRejected surfaces in Ready (False) and Stalled (True) while the API server refuses the
	// PersistentVolumeClaim; the message has its words. It is retried every 10 s. Also while files are copied to a claim
	// that is smaller, or of another class, than the source says now: delete the claim.
	ReasonStorageRejected ConditionReason = "StorageRejected"
	// ReasonStorageLost surfaces in Ready (False) and Stalled (True) when the volume behind the claim no longer exists:
	// delete the claim to start with an empty one. Also when the claim is in deletion, and has been blocked for 5 minutes.
	ReasonStorageLost ConditionReason = "StorageLost"
	// ReasonFilesNotCopied surfaces in Ready (Unknown) and Reconciling (True) while the files of another workspace are
	// copied. It is False and Stalled when that fails, which is retried, or takes longer than 30 minutes.
	ReasonFilesNotCopied ConditionReason = "FilesNotCopied"
	// ReasonTemplateNotFound surfaces in Ready (False) and Stalled (True) when there is no PodTemplate of the name with
	// the label parley.dev/workspace-template=true, and with those that podTemplateSelector names. For the first 10 s it
	// is Unknown and Reconciling.
	ReasonTemplateNotFound ConditionReason = "TemplateNotFound"
	// ReasonTemplateInvalid surfaces in Ready (False) and Stalled (True) when the PodTemplate, or a value for a parameter,
	// is invalid; the message contains what and where.
	ReasonTemplateInvalid ConditionReason = "TemplateInvalid"
	// ReasonNameConflict surfaces in Ready (False) and Stalled (True) while another object has the name of the pod, claim
	// or SandboxClaim: delete it. It is checked again every 10 s.
	ReasonNameConflict ConditionReason = "NameConflict"
)
