// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Condition types of a Chat, next to those of every kind.
const (
	// ConditionTruncated of a Chat is True when its newest reply was cut at 1 MiB, the limit of an object, and absent
	// otherwise.
	ConditionTruncated = "Truncated"
	// ConditionAdvisorUnavailable of a Chat is True when the ChatModelConfig that spec.advisor names does not exist, is
	// disabled, or has no prices in the currency of the budget: its reason is ModelConfigNotFound, ModelConfigDisabled,
	// ModelConfigInvalid or ModelPriceMissing. The model continues without advice. It is absent otherwise.
	ConditionAdvisorUnavailable = "AdvisorUnavailable"
	// ConditionModelConfigFallback of a Chat is True while the namespace's default answers in place of the ChatModelConfig
	// that is named, as spec.whenModelConfigUnavailable allows: its reason is ModelConfigNotFound or ModelConfigDisabled,
	// and status.model is the default's model. It is absent otherwise.
	ConditionModelConfigFallback = "ModelConfigFallback"
	// ConditionSettingsIgnored of a Chat is True while fields of its spec are ignored, because its ChatClass reserves
	// them; the message names them. Its reason is RestrictedByClass. It is absent otherwise.
	ConditionSettingsIgnored = "SettingsIgnored"
	// ConditionOutputReady of a Chat is True when the newest answer is JSON that matches the requested schema, which
	// status.output then has, and False when it is not; the message has the cause. Its reason is OutputValid or
	// OutputInvalid. It is absent while the turn is under way, and when no output was requested.
	ConditionOutputReady = "OutputReady"
	// ConditionMCPServersUnavailable of a Chat is True when its newest reply was made without the tools of some of
	// spec.mcpServers; the message names them, with cause and advice: docs/how-to/mcp.md. Its reason is that of the first
	// of them. It is absent otherwise.
	ConditionMCPServersUnavailable = "MCPServersUnavailable"
	// ConditionProviderToolsUnavailable of a Chat is True when its newest reply was made without some of
	// spec.tools.provider; the message and spec.generation.providerToolsUnavailable of the reply name them. Its reason is
	// that of the first of them. It is absent otherwise.
	ConditionProviderToolsUnavailable = "ProviderToolsUnavailable"
	// ConditionKubernetesUnavailable of a Chat is True when the API server gave no token of
	// spec.kubernetes.serviceAccountName at the newest reply; the message has the cause, and the commands that fix it:
	// docs/how-to/kubernetes.md. Its reason is TokenForbidden or TokenFailed. It is absent otherwise.
	ConditionKubernetesUnavailable = "KubernetesUnavailable"
	// ConditionArchiveUnavailable of a Chat is True while it is kept although its retention is over, because it cannot be
	// archived: its reason is ArchiveNotConfigured or ArchiveWriteFailed. It is absent otherwise.
	ConditionArchiveUnavailable = "ArchiveUnavailable"
	// ConditionShared of a Chat is True while the readers in spec.sharing have access; the message names them. It is
	// Unknown while access is being granted, and False if it cannot be granted or removed, or has ended: its reason is
	// Shared, Sharing, SharingFailed or SharingEnded. It is absent while spec.sharing is empty.
	ConditionShared = "Shared"
)

// Reasons of a Chat's conditions, next to every ErrorReason, which is a reason of Ready (False) and Stalled (True), and
// every MCPServerReason, which is one of MCPServersUnavailable (True), every ProviderToolReason, which is one of
// ProviderToolsUnavailable (True), and every KubernetesReason, which is one of KubernetesUnavailable (True).
const (
	// ReasonArchiveNotConfigured surfaces in ArchiveUnavailable (True) while the manager has no object storage.
	ReasonArchiveNotConfigured ConditionReason = "ArchiveNotConfigured"
	// ReasonArchiveWriteFailed surfaces in ArchiveUnavailable (True) after the archive could not be written, or was not
	// the same when it was read back. The manager tries again.
	ReasonArchiveWriteFailed ConditionReason = "ArchiveWriteFailed"
	// ReasonShared surfaces in Shared (True) while the readers have access.
	ReasonShared ConditionReason = "Shared"
	// ReasonSharing surfaces in Shared (Unknown) before the first Role and RoleBinding are created.
	ReasonSharing ConditionReason = "Sharing"
	// ReasonSharingFailed surfaces in Shared (False) while the API server refuses to change or delete the Role and the
	// RoleBinding; the message has its words. It is tried again every minute.
	ReasonSharingFailed ConditionReason = "SharingFailed"
	// ReasonSharingEnded surfaces in Shared (False) when the until of every reader has passed.
	ReasonSharingEnded ConditionReason = "SharingEnded"
	// ReasonAwaitingFirstMessage surfaces in Ready (True) when the chat has no message yet.
	ReasonAwaitingFirstMessage ConditionReason = "AwaitingFirstMessage"
	// ReasonStarting surfaces in Ready (Unknown) and Reconciling (True) while the first message is created from
	// spec.prompt.
	ReasonStarting ConditionReason = "Starting"
	// ReasonForking surfaces in Ready (Unknown) and Reconciling (True) while the history that spec.fork names is copied,
	// or while its chat has to continue from an edited message, or has text removed, before that.
	ReasonForking ConditionReason = "Forking"
	// ReasonForkSourceNotFound surfaces in Ready (False) and Stalled (True) while the chat that spec.fork names does not
	// exist, or its history does not have the message. For the first 10 s it is Unknown and Reconciling. It is checked
	// again every minute.
	ReasonForkSourceNotFound ConditionReason = "ForkSourceNotFound"
	// ReasonForkRejected surfaces in Ready (False) and Stalled (True) while a copy of a message cannot be created: another
	// message has its name, or the API server refuses it; the message contains its words. For the first 10 s it is Unknown
	// and Reconciling. It is checked again every minute.
	ReasonForkRejected ConditionReason = "ForkRejected"
	// ReasonForkFilesNotCopied surfaces in Ready (Unknown) and Reconciling (True) while a fork waits for the files of
	// the source's workspace. It is False and Stalled if they cannot be copied, or are not within 30 minutes; the message
	// has the cause. It is retried. Set spec.fork.workspace to None to begin without the files.
	ReasonForkFilesNotCopied ConditionReason = "ForkFilesNotCopied"
	// ReasonRestoring surfaces in Ready (Unknown) and Reconciling (True) until the chat is restored from a backup.
	ReasonRestoring ConditionReason = "Restoring"
	// ReasonWaitingForEdit surfaces in Ready (Unknown) and Reconciling (True) while the chat only waits for a message that
	// someone edits, and of that message while it waits. It ends with the edit, or after a few minutes.
	ReasonWaitingForEdit ConditionReason = "WaitingForEdit"
	// ReasonAnswered surfaces in Ready (True) when every message is answered.
	ReasonAnswered ConditionReason = "Answered"
	// ReasonMaxTokensReached surfaces in Ready (True) when the last reply reached its limit of output tokens. Send a
	// message to continue, or raise maxOutputTokens of the ChatModelConfig.
	ReasonMaxTokensReached ConditionReason = "MaxTokensReached"
	// ReasonRefused surfaces in Ready (True) when the model refused to answer; the last reply has its explanation.
	ReasonRefused ConditionReason = "Refused"
	// ReasonStoppedAfterTool surfaces in Ready (True) when the result of a tool in tools.stopAfter ended the turn. Send a
	// message to continue.
	ReasonStoppedAfterTool ConditionReason = "StoppedAfterTool"
	// ReasonMaxStepsReached surfaces in Ready (True) when limits.maxSteps ended the turn. Send a message to continue.
	ReasonMaxStepsReached ConditionReason = "MaxStepsReached"
	// ReasonGenerating surfaces in Ready (Unknown) and Reconciling (True) while the model answers.
	ReasonGenerating ConditionReason = "Generating"
	// ReasonExecutingTools surfaces in Ready (Unknown) and Reconciling (True) while tools run.
	ReasonExecutingTools ConditionReason = "ExecutingTools"
	// ReasonRetrying surfaces in Ready (Unknown) and Reconciling (True) while a failed step waits for its next attempt;
	// the message has the cause and the time.
	ReasonRetrying ConditionReason = "Retrying"
	// ReasonCompacting surfaces in Ready (Unknown) and Reconciling (True) while the context is summarised.
	ReasonCompacting ConditionReason = "Compacting"
	// ReasonWaitingForPod surfaces in Ready (Unknown) and Reconciling (True) while the generation pod starts; the message
	// has the cause. After two minutes (the manager's --pod-start) it is replaced.
	ReasonWaitingForPod ConditionReason = "WaitingForPod"
	// ReasonGenerationPodRejected surfaces in Ready (Unknown) and Reconciling (True) while the API server refuses the
	// generation pod that the next step needs: a ResourceQuota, a LimitRange, Pod Security, a policy, or missing rights.
	// The message has its words. It is tried again every 10 s.
	ReasonGenerationPodRejected ConditionReason = "GenerationPodRejected"
	// ReasonPromptRejected surfaces in Ready (Unknown) and Reconciling (True) while the API server refuses the message of
	// spec.prompt. It is tried again every 10 s.
	ReasonPromptRejected ConditionReason = "PromptRejected"
	// ReasonPromptNameConflict surfaces in Ready (False) and Stalled (True) while a message of another chat has the name
	// CHAT-prompt: delete it, and the chat starts. For the first 10 s it is Unknown and Reconciling, because a former chat
	// of the name may be in deletion.
	ReasonPromptNameConflict ConditionReason = "PromptNameConflict"
	// ReasonInterrupting surfaces in Ready (Unknown) and Reconciling (True) while a partial reply is finished.
	ReasonInterrupting ConditionReason = "Interrupting"
	// ReasonRequiresAction surfaces in Ready (Unknown) and Reconciling (True) while calls wait for a client or for people:
	// status.requiresAction.
	ReasonRequiresAction ConditionReason = "RequiresAction"
	// ReasonInterrupted surfaces in Ready (True) when the last turn was interrupted.
	ReasonInterrupted ConditionReason = "Interrupted"
	// ReasonSuspended surfaces in Ready (Unknown) and Reconciling (True) while spec.suspend holds the next step.
	ReasonSuspended ConditionReason = "Suspended"
	// ReasonWaitingForModel surfaces in Ready (Unknown) and Reconciling (True) while the limits of the ChatModelConfig, or
	// its provider, allow no call.
	ReasonWaitingForModel ConditionReason = "WaitingForModel"
	// ReasonWaitingForCapacity surfaces in Ready (Unknown) and Reconciling (True) while the next step waits for a
	// generation slot; the message names the quota: docs/how-to/quotas.md.
	ReasonWaitingForCapacity ConditionReason = "WaitingForCapacity"
	// ReasonWaitingForSubChats surfaces in Ready (Unknown) and Reconciling (True) while calls wait for sub-chats:
	// status.turn.waitingFor. No generation pod has work for the chat meanwhile.
	ReasonWaitingForSubChats ConditionReason = "WaitingForSubChats"
	// ReasonWaitingForWorkspace surfaces in Ready (Unknown) and Reconciling (True) while tool calls wait for the
	// workspace; the message has the cause: docs/how-to/workspaces.md. No generation pod has work for the chat meanwhile.
	ReasonWaitingForWorkspace ConditionReason = "WaitingForWorkspace"
	// ReasonWaitingForMCPServers surfaces in Ready (Unknown) and Reconciling (True) while MCP servers of spec.mcpServers,
	// or their workspace, start; at most a minute of a turn. No generation pod has work for the chat meanwhile.
	ReasonWaitingForMCPServers ConditionReason = "WaitingForMCPServers"
	// ReasonArchived surfaces in Ready (True) when the chat is archived.
	ReasonArchived ConditionReason = "Archived"
	// ReasonArchiving surfaces in Ready (Unknown) and Reconciling (True) while the chat is to be archived and a chat of
	// its family still works.
	ReasonArchiving ConditionReason = "Archiving"
	// ReasonRestrictedByClass surfaces in SettingsIgnored (True) when the ChatClass reserves a field that the chat sets.
	ReasonRestrictedByClass ConditionReason = "RestrictedByClass"
	// ReasonOutputValid surfaces in OutputReady (True) when the answer matches the schema.
	ReasonOutputValid ConditionReason = "OutputValid"
	// ReasonReplyTooLarge surfaces in Truncated (True) when the reply was cut at 1 MiB, the limit of an object.
	ReasonReplyTooLarge ConditionReason = "ReplyTooLarge"
)
