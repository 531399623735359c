// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of every kind in this package. They follow kstatus, so that kubectl wait, Argo CD and Flux understand
// the objects without a plug-in: Ready is always present; Reconciling is present and True while work is under way;
// Stalled is present and True when a person is needed; never both of the latter.
const (
	// ConditionReady is True when nothing is left to do, Unknown while work is under way, False when it failed.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work is under way, and absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will happen until a person acts, and absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionTruncated of a Chat is True when its newest reply outgrew what one object can hold and was cut there,
	// and absent otherwise.
	ConditionTruncated = "Truncated"
	// ConditionAdvisorUnavailable of a Chat is True when the ChatModelConfig that spec.advisor names cannot give advice:
	// its reason is ModelConfigNotFound, ModelConfigDisabled or ModelConfigInvalid.
	// It is absent otherwise, and keeps no turn from going on.
	ConditionAdvisorUnavailable = "AdvisorUnavailable"
	// ConditionModelConfigFallback of a Chat is True while the namespace's default answers in place of the ChatModelConfig
	// that is named, as spec.whenModelConfigUnavailable allows: its reason is ModelConfigNotFound or ModelConfigDisabled.
	// It is absent otherwise.
	ConditionModelConfigFallback = "ModelConfigFallback"
)

// Reasons of a Chat's conditions, besides every ErrorReason, which is a reason of Ready (False) and Stalled (True).
const (
	// ReasonAwaitingFirstMessage surfaces in Ready (True) when the chat has no message yet.
	ReasonAwaitingFirstMessage = "AwaitingFirstMessage"
	// ReasonBeginning surfaces in Ready (Unknown) and Reconciling (True) until spec.prompt has become the first message.
	ReasonBeginning = "Beginning"
	// ReasonAnswered surfaces in Ready (True) when the last turn ended with a reply.
	ReasonAnswered = "Answered"
	// ReasonStoppedAfterTool surfaces in Ready (True) when the last turn was ended by the result of a tool in
	// tools.stopAfter.
	ReasonStoppedAfterTool = "StoppedAfterTool"
	// ReasonMaxStepsReached surfaces in Ready (True) when the last turn was ended by limits.maxSteps.
	ReasonMaxStepsReached = "MaxStepsReached"
	// ReasonGenerating surfaces in Ready (Unknown) and Reconciling (True) while the model is asked.
	ReasonGenerating = "Generating"
	// ReasonExecutingTools surfaces in Ready (Unknown) and Reconciling (True) while tools run.
	ReasonExecutingTools = "ExecutingTools"
	// ReasonRetrying surfaces in Ready (Unknown) and Reconciling (True) while a step that failed waits for its next
	// attempt.
	ReasonRetrying = "Retrying"
	// ReasonCompacting surfaces in Ready (Unknown) and Reconciling (True) while the context is being summarised.
	ReasonCompacting = "Compacting"
	// ReasonWaitingForPod surfaces in Ready (Unknown) and Reconciling (True) while the generation pod starts.
	ReasonWaitingForPod = "WaitingForPod"
	// ReasonGenerationPodRefused surfaces in Ready (Unknown) and Reconciling (True) while the API server refuses the
	// generation pod that the next step needs: a ResourceQuota, a LimitRange, Pod Security, a policy, or missing rights.
	ReasonGenerationPodRefused = "GenerationPodRefused"
	// ReasonPromptRefused surfaces in Ready (Unknown) and Reconciling (True) while the API server refuses the message that
	// spec.prompt is to become.
	ReasonPromptRefused = "PromptRefused"
	// ReasonPromptNameTaken surfaces in Ready (False) and Stalled (True) while another message has the name of the one
	// that spec.prompt is to become. For the first 10 s it is Unknown and Reconciling:
	// a former chat of the name may be on its way out.
	ReasonPromptNameTaken = "PromptNameTaken"
	// ReasonInterrupting surfaces in Ready (Unknown) and Reconciling (True) while a partial reply is finished.
	ReasonInterrupting = "Interrupting"
	// ReasonRequiresAction surfaces in Ready (Unknown) and Reconciling (True) while a person or a client must act.
	ReasonRequiresAction = "RequiresAction"
	// ReasonInterrupted surfaces in Ready (True) when the last turn was interrupted.
	ReasonInterrupted = "Interrupted"
	// ReasonSuspended surfaces in Ready (Unknown) and Reconciling (True) while spec.suspend holds work that there is.
	ReasonSuspended = "Suspended"
	// ReasonWaitingForCapacity surfaces in Ready (Unknown) and Reconciling (True) while the next step waits because as
	// many chats are generating as may.
	ReasonWaitingForCapacity = "WaitingForCapacity"
	// ReasonWaitingForSubChats surfaces in Ready (Unknown) and Reconciling (True) while the next step waits for sub-chats,
	// as calls in status.turn.waitingFor ask. No generation pod has work for the chat meanwhile.
	ReasonWaitingForSubChats = "WaitingForSubChats"
	// ReasonArchived surfaces in Ready (True) when the chat is archived.
	ReasonArchived = "Archived"
	// ReasonArchiving surfaces in Ready (Unknown) and Reconciling (True) while the chat is to be archived and it, or one
	// of its family, is still at work.
	ReasonArchiving = "Archiving"
	// ReasonReplyTooLarge surfaces in Truncated (True) when the reply was cut at the size that one object can hold.
	ReasonReplyTooLarge = "ReplyTooLarge"
)
