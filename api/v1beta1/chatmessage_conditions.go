// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a User message's conditions, next to every ErrorReason, which is a reason of Ready (False) and Stalled
// (True) when the turn that the message began failed, ReasonAnswered, ReasonStoppedAfterTool and ReasonMaxStepsReached,
// which are reasons of Ready (True), and ReasonInterrupted, which is one of Ready (False) and Stalled (True).
const (
	// ReasonAnswering surfaces in Ready (Unknown) and Reconciling (True) from the message's commit to the turn's end.
	ReasonAnswering ConditionReason = "Answering"
	// ReasonQueued surfaces in Ready (Unknown) and Reconciling (True) while the message waits for a turn to end.
	ReasonQueued ConditionReason = "Queued"
	// ReasonChatNotFound surfaces in Ready (Unknown) and Reconciling (True) while the chat of chatRef does not exist.
	ReasonChatNotFound ConditionReason = "ChatNotFound"
	// ReasonWaitingForChat surfaces in Ready (Unknown) and Reconciling (True) while the chat cannot begin: it has no
	// ChatModelConfig that could answer, or its parent does not exist or allows no such sub-chat.
	ReasonWaitingForChat ConditionReason = "WaitingForChat"
	// ReasonNoted surfaces in Ready (True) when a message for people alone has its place in the conversation.
	ReasonNoted ConditionReason = "Noted"
	// ReasonQueueFull surfaces in Ready (False) and Stalled (True) when the message was rejected because the queue was
	// full.
	ReasonQueueFull ConditionReason = "QueueFull"
	// ReasonChatArchived surfaces in Ready (Unknown) and Reconciling (True) while the chat is archived, or is to be; the
	// message, or the edit of a committed one, is taken up once it is taken back.
	ReasonChatArchived ConditionReason = "ChatArchived"
	// ReasonSuperseded surfaces in Ready (False) and Stalled (True) when a message before this one was edited or deleted,
	// so that the conversation continues without it.
	ReasonSuperseded ConditionReason = "Superseded"
	// ReasonResultsAccepted surfaces in Ready (True) when the results of a Tool message answer the calls that waited.
	ReasonResultsAccepted ConditionReason = "ResultsAccepted"
	// ReasonResultsInvalid surfaces in Ready (False) and Stalled (True) when a Tool message's results were refused: they
	// do not answer exactly the calls that wait for a client, or are not valid JSON.
	ReasonResultsInvalid ConditionReason = "ResultsInvalid"
	// ReasonWaitingForApproval surfaces in Ready (Unknown) and Reconciling (True) while a Tool message waits until other
	// calls of the same reply have been approved or denied.
	ReasonWaitingForApproval ConditionReason = "WaitingForApproval"
	// ReasonTurnFailed surfaces in Ready (False) and Stalled (True) when the turn failed and its cause is no longer known.
	ReasonTurnFailed ConditionReason = "TurnFailed"
)
