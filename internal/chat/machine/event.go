// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// Event is something that happened to a chat, or that somebody asks of it.
type Event string

// The events. Their order is that of the generated documentation.
const (
	Create                 Event = "Create"
	Fork                   Event = "Fork"
	SendMessageQueue       Event = "SendMessageQueue"
	SendMessageInterrupt   Event = "SendMessageInterrupt"
	EditMessage            Event = "EditMessage"
	DeleteMessage          Event = "DeleteMessage"
	DeleteQueued           Event = "DeleteQueued"
	PromoteQueued          Event = "PromoteQueued"
	Interrupt              Event = "Interrupt"
	CompleteRequiresAction Event = "CompleteRequiresAction"
	CancelRequiresAction   Event = "CancelRequiresAction"
	RecordAttempt          Event = "RecordAttempt"
	RecordRetry            Event = "RecordRetry"
	AttemptLost            Event = "AttemptLost"
	ContextTooLong         Event = "ContextTooLong"
	CommitStep             Event = "CommitStep"
	EnterRequiresAction    Event = "EnterRequiresAction"
	FinishTurn             Event = "FinishTurn"
	FinishError            Event = "FinishError"
	FinishInterruption     Event = "FinishInterruption"
	RequestCompaction      Event = "RequestCompaction"
	ClearContext           Event = "ClearContext"
	Archive                Event = "Archive"
	Unarchive              Event = "Unarchive"
	ReconcileInvalid       Event = "ReconcileInvalid"
)

type eventSpec struct {
	event   Event
	meaning string
}

var eventSpecs = []eventSpec{
	{Create, "The chat got its first User message."},
	{Fork, "The chat got the history that it continues from another chat."},
	{SendMessageQueue, "A User message came that waits its turn when the chat is busy (whenBusy: Queue)."},
	{SendMessageInterrupt, "A User message came that cuts in when the chat is busy (whenBusy: Interrupt)."},
	{EditMessage, "A committed User message was changed: the chat runs again from there."},
	{DeleteMessage, "A committed message was deleted: the chat continues from what was before it."},
	{DeleteQueued, "A queued message was deleted."},
	{PromoteQueued, "A queued message was told to cut in (whenBusy changed to Interrupt)."},
	{Interrupt, "A person asked to stop the turn and to keep the partial reply."},
	{CompleteRequiresAction, "A person or a client answered all pending tool calls."},
	{CancelRequiresAction, "The pending tool calls were not answered before the deadline."},
	{RecordAttempt, "A generation pod is given the next action of the turn."},
	{RecordRetry, "An attempt failed in a way that is worth another try, after a wait."},
	{AttemptLost,
		"The generation pod of the attempt is gone, or never started, or its result cannot have its name; another attempt " +
			"takes over."},
	{ContextTooLong, "The model refused the context as too long for it."},
	{CommitStep, "A generation pod finished a step under the current fence."},
	{EnterRequiresAction, "Only tool calls are left that a person or a client must answer."},
	{FinishTurn, "The turn is over."},
	{FinishError, "The turn cannot continue."},
	{FinishInterruption, "The interrupted attempt has ended, with or without a partial reply."},
	{RequestCompaction, "A person asked to replace the older part of the context by a summary."},
	{ClearContext, "A person asked to begin a new context without a summary."},
	{Archive, "A person asked to archive the chat."},
	{Unarchive, "A person asked to unarchive the chat."},
	{ReconcileInvalid, "The chat was found in a combination that must not exist."},
}

// Events lists every event once.
func Events() []Event {
	out := make([]Event, 0, len(eventSpecs))
	for _, e := range eventSpecs {
		out = append(out, e.event)
	}
	return out
}

// Meaning says in one sentence when the event happens; it is empty for a word that is not an event.
func (e Event) Meaning() string {
	for _, s := range eventSpecs {
		if s.event == e {
			return s.meaning
		}
	}
	return ""
}
