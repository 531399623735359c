// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a User message's conditions, next to every ErrorReason, which is a reason of Ready (False) and Stalled
// (True) when the turn that the message began failed, ReasonAnswered, ReasonStoppedAfterTool and ReasonMaxStepsReached,
// which are reasons of Ready (True), and ReasonInterrupted, which is one of Ready (False) and Stalled (True).
const (
	// ReasonAnswering surfaces in Ready (Unknown) and Reconciling (True) once the chat has worked on the message for 5 s;
	// until then only the Chat reports it. State: Committed.
	ReasonAnswering ConditionReason = "Answering"
	// ReasonQueued surfaces in Ready (Unknown) and Reconciling (True) while the message waits for the running turn. State:
	// Queued.
	ReasonQueued ConditionReason = "Queued"
	// ReasonChatNotFound surfaces in Ready (Unknown) and Reconciling (True) while the chat of chatRef does not exist.
	// State: Pending.
	ReasonChatNotFound ConditionReason = "ChatNotFound"
	// ReasonWaitingForChat surfaces in Ready (Unknown) and Reconciling (True) while the chat cannot begin: it has no
	// ChatModelConfig that could answer, or its parent does not exist or allows no such sub-chat. See its conditions.
	// State: Pending.
	ReasonWaitingForChat ConditionReason = "WaitingForChat"
	// ReasonNoted surfaces in Ready (True) when the message is a note: people see it, and no model answers. State: Noted.
	ReasonNoted ConditionReason = "Noted"
	// ReasonQueueFull surfaces in Ready (False) and Stalled (True) when the queue was full. Delete the message and create
	// it again when there is space. State: Rejected.
	ReasonQueueFull ConditionReason = "QueueFull"
	// ReasonChatArchived surfaces in Ready (Unknown) and Reconciling (True) while the chat, or one above it, is archived
	// or will be. The message, or the edit of a committed one, counts once the chat is unarchived. State: Pending or
	// Committed.
	ReasonChatArchived ConditionReason = "ChatArchived"
	// ReasonSuperseded surfaces in Ready (False) and Stalled (True) when a message before it was edited or deleted: the
	// conversation continues without it. State: Superseded.
	ReasonSuperseded ConditionReason = "Superseded"
	// ReasonResultsAccepted surfaces in Ready (True) when the results of a Tool message answer the calls that waited.
	// State: Committed.
	ReasonResultsAccepted ConditionReason = "ResultsAccepted"
	// ReasonResultsInvalid surfaces in Ready (False) and Stalled (True) when a Tool message's results were refused: they
	// do not answer exactly the calls that wait for a client, or are not valid JSON. State: Rejected.
	ReasonResultsInvalid ConditionReason = "ResultsInvalid"
	// ReasonWaitingForApproval surfaces in Ready (Unknown) and Reconciling (True) while a Tool message waits until other
	// calls of the same reply are approved or denied. State: Pending.
	ReasonWaitingForApproval ConditionReason = "WaitingForApproval"
	// ReasonTurnFailed surfaces in Ready (False) and Stalled (True) when the turn failed and its cause is no longer known.
	// State: Committed.
	ReasonTurnFailed ConditionReason = "TurnFailed"
)
