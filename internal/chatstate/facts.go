// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

// Target is what the message is that an event names.
type Target string

// The targets. The zero value is the one that allows nothing.
const (
	// TargetMissing means that the chat has no such message.
	TargetMissing Target = ""
	// TargetQueued means that the message waits in the queue.
	TargetQueued Target = "Queued"
	// TargetUser means that it is a User message in the history.
	TargetUser Target = "User"
	// TargetOther means that it is a message of another role in the history.
	TargetOther Target = "Other"
)

// Answers is what is wrong with the results that were given for the pending tool calls, if anything.
type Answers string

// The findings. The zero value is the one that allows nothing.
const (
	// AnswersMissing means that a pending call has no result.
	AnswersMissing Answers = ""
	// AnswersDuplicate means that a call has two results.
	AnswersDuplicate Answers = "Duplicate"
	// AnswersUnexpected means that a result answers no pending call.
	AnswersUnexpected Answers = "Unexpected"
	// AnswersInvalid means that a result is not valid JSON.
	AnswersInvalid Answers = "Invalid"
	// AnswersComplete means that each pending call has exactly one valid result.
	AnswersComplete Answers = "Complete"
)

// Facts are what a transition depends on besides the state. QueueLen and QueueCap always count; each other field counts
// only for the events that it names, and its zero value refuses or is harmless.
type Facts struct {
	// QueueLen is the number of queued messages before the event. It must agree with State.QueueNonEmpty.
	QueueLen int
	// QueueCap is the number of messages that may be queued (Chat.spec.limits.maxQueue).
	QueueCap int
	// CutInRoom (SendMessageInterrupt) is by how many messages those that cut in may exceed QueueCap.
	CutInRoom int
	// FirstMessage (Create) is true when the chat has a User message to begin with.
	FirstMessage bool
	// Target (EditMessage, DeleteQueued, PromoteQueued) is what the named message is.
	Target Target
	// PendingCalls (EnterRequiresAction) is true when calls wait for a person or a client.
	PendingCalls bool
	// Answers (CompleteRequiresAction) is what was found about the results.
	Answers Answers
	// Unanswered (DeleteMessage) is true when what is left of the history ends with something that the model must answer.
	Unanswered bool
	// Suspended (RecordAttempt) is true when the chat, or a chat above it, is suspended.
	Suspended bool
	// SubChatsAtWork (RecordAttempt) is true when the calls that are to be run wait for sub-chats that are still at work.
	SubChatsAtWork bool
	// NoCapacity (RecordAttempt) is true when as many chats are generating as may.
	NoCapacity bool
	// PodRefused (RecordAttempt) is true when no generation pod has room and the API server refuses another one.
	PodRefused bool
	// RetryWaits (RecordAttempt) is true until the time that was set for the next attempt.
	RetryWaits bool
	// Compactable (RequestCompaction) is true when at least one Assistant message follows the last boundary.
	Compactable bool
	// Clearable (ClearContext) is true when a message that the model sees follows the last boundary.
	Clearable bool
	// FamilyBusy (Archive) is true when another chat of the family to be archived is neither Waiting nor in Error.
	FamilyBusy bool
	// ParentArchived (Unarchive) is true when the chat's parent is archived.
	ParentArchived bool
}

// After is f as it stands once t has been carried out, so that a further event can be asked of t.To in the same write.
// It counts the queue; all else stays.
func (f Facts) After(t Transition) Facts {
	for _, e := range t.Effects {
		switch e {
		case EnqueueMessage, EnqueueCutIn:
			f.QueueLen++
		case PromoteHead, RemoveQueued:
			f.QueueLen--
		case ClearQueue:
			f.QueueLen = 0
		}
	}
	return f
}
