// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// Facts are what a transition depends on besides the state. QueueLen and QueueCap always count; each other field counts
// only for the events that it names, and its zero value is harmless.
type Facts struct {
	// QueueLen is the number of queued messages before the event that no one holds.
	QueueLen int
	// QueueCap is the number of messages that may be queued (Chat.spec.limits.maxQueue), without held ones.
	QueueCap int
	// CutInRoom (SendMessageInterrupt) is by how many messages those that cut in may exceed QueueCap.
	CutInRoom int
	// CallsUnread (EnterRequiresAction) is true when no one can be asked,
	// because the reply that made the calls was not read.
	CallsUnread bool
	// Unanswered (DeleteMessage) is true when what is left of the history ends with something that the model must answer.
	Unanswered bool
	// Suspended (RecordAttempt) is true when the chat, or a chat above it, is suspended.
	Suspended bool
	// ReferenceMissing (RecordAttempt) is true while the ChatClass that the chat names, or the ChatModelConfig that
	// answers, does not exist.
	ReferenceMissing bool
	// OverBudget (RecordAttempt) is true when a model is to be called and a budget is reached, or could not be kept.
	OverBudget bool
	// SubChatsAtWork (RecordAttempt) is true when the calls that are to be run wait for sub-chats that are still at work.
	SubChatsAtWork bool
	// WorkspaceStarting (RecordAttempt) is true when the calls that are to be run need a workspace that is starting.
	WorkspaceStarting bool
	// ServersStarting (RecordAttempt) is true when the model is to be asked and an MCP server that the chat refers to,
	// or the workspace in which one runs, is starting.
	ServersStarting bool
	// ModelLimited (RecordAttempt) is true when the model that is to be called may not be called now.
	ModelLimited bool
	// NoCapacity (RecordAttempt) is true when as many chats are generating as may.
	NoCapacity bool
	// PodRejected (RecordAttempt) is true when no generation pod has room and the API server refuses another one.
	PodRejected bool
	// RetryNotDue (RecordAttempt) is true until the time that was set for the next attempt.
	RetryNotDue bool
	// Compactable (RequestCompaction, ContextTooLong) is true when at least one Assistant message follows the last
	// boundary.
	Compactable bool
	// Clearable (ClearContext) is true when a message that the model sees follows the last boundary.
	Clearable bool
	// FamilyBusy (Archive) is true when another chat of the family to be archived is neither Waiting nor in Error.
	FamilyBusy bool
	// ParentArchived (Unarchive) is true when the chat's parent is archived.
	ParentArchived bool
}
