// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Condition types of a Chat, next to those of every kind.
const (
	// ConditionTruncated of a Chat is True when its newest reply outgrew what one object can hold and was cut there,
	// and absent otherwise.
	ConditionTruncated = "Truncated"
	// ConditionAdvisorUnavailable of a Chat is True when the ChatModelConfig that spec.advisor names cannot give advice:
	// its reason is ModelConfigNotFound, ModelConfigDisabled or ModelConfigInvalid.
	// It is absent otherwise, and keeps no turn from continuing.
	ConditionAdvisorUnavailable = "AdvisorUnavailable"
	// ConditionModelConfigFallback of a Chat is True while the namespace's default answers in place of the ChatModelConfig
	// that is named, as spec.whenModelConfigUnavailable allows: its reason is ModelConfigNotFound or ModelConfigDisabled.
	// It is absent otherwise.
	ConditionModelConfigFallback = "ModelConfigFallback"
	// ConditionSettingsIgnored of a Chat is True while fields of its spec do not count, because its ChatClass keeps them
	// to itself: its reason is RestrictedByClass. It is absent otherwise.
	ConditionSettingsIgnored = "SettingsIgnored"
	// ConditionOutputReady of a Chat is True when the newest answer is JSON that matches the schema that was asked for,
	// and False when it is not: its reason is OutputValid or OutputInvalid. It is absent while the turn is under way, and
	// when no output was asked for.
	ConditionOutputReady = "OutputReady"
	// ConditionMCPServersUnavailable of a Chat is True when its newest reply was made without the tools of some of
	// spec.mcpServers: its reason is that of the first of them, its message names all. It is absent otherwise.
	ConditionMCPServersUnavailable = "MCPServersUnavailable"
	// ConditionProviderToolsUnavailable of a Chat is True when its newest reply was made without some of
	// spec.tools.provider: its reason is that of the first of them, its message names all. It is absent otherwise.
	ConditionProviderToolsUnavailable = "ProviderToolsUnavailable"
	// ConditionKubernetesUnavailable of a Chat is True when the model could not work in the cluster at the newest reply,
	// although spec.kubernetes lets it: its reason is TokenForbidden or TokenFailed. It is absent otherwise.
	ConditionKubernetesUnavailable = "KubernetesUnavailable"
)

// Reasons of a Chat's conditions, next to every ErrorReason, which is a reason of Ready (False) and Stalled (True), and
// every MCPServerReason, which is one of MCPServersUnavailable (True), every ProviderToolReason, which is one of
// ProviderToolsUnavailable (True), and every KubernetesReason, which is one of KubernetesUnavailable (True).
const (
	// ReasonAwaitingFirstMessage surfaces in Ready (True) when the chat has no message yet.
	ReasonAwaitingFirstMessage ConditionReason = "AwaitingFirstMessage"
	// ReasonStarting surfaces in Ready (Unknown) and Reconciling (True) until spec.prompt has become the first message.
	ReasonStarting ConditionReason = "Starting"
	// ReasonAnswered surfaces in Ready (True) when the last turn ended with a reply.
	ReasonAnswered ConditionReason = "Answered"
	// ReasonMaxTokensReached surfaces in Ready (True) when the last turn ended with a reply that reached the limit of
	// output tokens.
	ReasonMaxTokensReached ConditionReason = "MaxTokensReached"
	// ReasonRefused surfaces in Ready (True) when the last turn ended with the model's refusal.
	ReasonRefused ConditionReason = "Refused"
	// ReasonStoppedAfterTool surfaces in Ready (True) when the last turn was ended by the result of a tool in
	// tools.stopAfter.
	ReasonStoppedAfterTool ConditionReason = "StoppedAfterTool"
	// ReasonMaxStepsReached surfaces in Ready (True) when the last turn was ended by limits.maxSteps.
	ReasonMaxStepsReached ConditionReason = "MaxStepsReached"
	// ReasonGenerating surfaces in Ready (Unknown) and Reconciling (True) while the model is asked.
	ReasonGenerating ConditionReason = "Generating"
	// ReasonExecutingTools surfaces in Ready (Unknown) and Reconciling (True) while tools run.
	ReasonExecutingTools ConditionReason = "ExecutingTools"
	// ReasonRetrying surfaces in Ready (Unknown) and Reconciling (True) while a step that failed waits for its next
	// attempt.
	ReasonRetrying ConditionReason = "Retrying"
	// ReasonCompacting surfaces in Ready (Unknown) and Reconciling (True) while the context is being summarised.
	ReasonCompacting ConditionReason = "Compacting"
	// ReasonWaitingForPod surfaces in Ready (Unknown) and Reconciling (True) while the generation pod starts.
	ReasonWaitingForPod ConditionReason = "WaitingForPod"
	// ReasonGenerationPodRejected surfaces in Ready (Unknown) and Reconciling (True) while the API server refuses the
	// generation pod that the next step needs: a ResourceQuota, a LimitRange, Pod Security, a policy, or missing rights.
	ReasonGenerationPodRejected ConditionReason = "GenerationPodRejected"
	// ReasonPromptRejected surfaces in Ready (Unknown) and Reconciling (True) while the API server refuses the message
	// that spec.prompt is to become.
	ReasonPromptRejected ConditionReason = "PromptRejected"
	// ReasonPromptNameConflict surfaces in Ready (False) and Stalled (True) while another message has the name of the one
	// that spec.prompt is to become. For the first 10 s it is Unknown and Reconciling:
	// a former chat of the name may be on its way out.
	ReasonPromptNameConflict ConditionReason = "PromptNameConflict"
	// ReasonInterrupting surfaces in Ready (Unknown) and Reconciling (True) while a partial reply is finished.
	ReasonInterrupting ConditionReason = "Interrupting"
	// ReasonRequiresAction surfaces in Ready (Unknown) and Reconciling (True) while a person or a client must act.
	ReasonRequiresAction ConditionReason = "RequiresAction"
	// ReasonInterrupted surfaces in Ready (True) when the last turn was interrupted.
	ReasonInterrupted ConditionReason = "Interrupted"
	// ReasonSuspended surfaces in Ready (Unknown) and Reconciling (True) while spec.suspend holds work that there is.
	ReasonSuspended ConditionReason = "Suspended"
	// ReasonWaitingForModel surfaces in Ready (Unknown) and Reconciling (True) while the next step waits because the
	// limits of the ChatModelConfig, or its provider, do not let the model be called now.
	ReasonWaitingForModel ConditionReason = "WaitingForModel"
	// ReasonWaitingForCapacity surfaces in Ready (Unknown) and Reconciling (True) while the next step waits because as
	// many chats are generating as may.
	ReasonWaitingForCapacity ConditionReason = "WaitingForCapacity"
	// ReasonWaitingForSubChats surfaces in Ready (Unknown) and Reconciling (True) while the next step waits for sub-chats,
	// as calls in status.turn.waitingFor ask. No generation pod has work for the chat meanwhile.
	ReasonWaitingForSubChats ConditionReason = "WaitingForSubChats"
	// ReasonWaitingForWorkspace surfaces in Ready (Unknown) and Reconciling (True) while tool calls wait for the workspace
	// to be ready. No generation pod has work for the chat meanwhile.
	ReasonWaitingForWorkspace ConditionReason = "WaitingForWorkspace"
	// ReasonWaitingForMCPServers surfaces in Ready (Unknown) and Reconciling (True) while the next step waits for MCP
	// servers that spec.mcpServers refers to. No generation pod has work for the chat meanwhile.
	ReasonWaitingForMCPServers ConditionReason = "WaitingForMCPServers"
	// ReasonArchived surfaces in Ready (True) when the chat is archived.
	ReasonArchived ConditionReason = "Archived"
	// ReasonArchiving surfaces in Ready (Unknown) and Reconciling (True) while the chat is to be archived and it, or one
	// of its family, is still at work.
	ReasonArchiving ConditionReason = "Archiving"
	// ReasonRestrictedByClass surfaces in SettingsIgnored (True) when the ChatClass does not let its chats set a field.
	ReasonRestrictedByClass ConditionReason = "RestrictedByClass"
	// ReasonOutputValid surfaces in OutputReady (True) when the answer matches the schema.
	ReasonOutputValid ConditionReason = "OutputValid"
	// ReasonReplyTooLarge surfaces in Truncated (True) when the reply was cut at the size that one object can hold.
	ReasonReplyTooLarge ConditionReason = "ReplyTooLarge"
)
