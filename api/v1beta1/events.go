// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// EventReason is the reason of an Event. All Events are about a Chat, and what goes well makes none.
// Every ErrorReason is one, too: a turn failed with it.
type EventReason string

// Reasons of Events about the work on a turn.
const (
	// EventAttemptLost surfaces when the generation pod of an attempt is gone, or never started, or when the attempt can
	// have no result; it is made again.
	EventAttemptLost EventReason = "AttemptLost"
	// EventActionDeadlineExceeded surfaces when no one answered or approved the pending tool calls in time.
	EventActionDeadlineExceeded EventReason = "ActionDeadlineExceeded"
	// EventSummarizerUnavailable surfaces when the model that compaction.modelConfigRef names cannot write a summary, so
	// that the one which answers does.
	EventSummarizerUnavailable EventReason = "SummarizerUnavailable"
	// EventExpired surfaces when a chat was deleted because it had rested for as long as its retention says.
	EventExpired EventReason = "Expired"
	// EventReplyTooLarge surfaces when a reply was cut at the size that one object can hold.
	EventReplyTooLarge = EventReason(ReasonReplyTooLarge)
	// EventGenerationPodRejected surfaces when the API server begins to refuse the generation pod that the next step
	// needs.
	EventGenerationPodRejected = EventReason(ReasonGenerationPodRejected)
	// EventAgentRejected surfaces when the API server refuses a sub-chat that the model starts, or what it says to one.
	EventAgentRejected EventReason = "AgentRejected"
	// EventPromptRejected surfaces when the API server begins to refuse the message that spec.prompt is to become.
	EventPromptRejected = EventReason(ReasonPromptRejected)
	// EventWaiting surfaces when a chat waits for someone, or has waited for something else for 10 s. It is Normal,
	// and its note begins with the reason of condition Ready.
	EventWaiting EventReason = "Waiting"
	// EventPromptNameConflict surfaces when another message is found to have the name of the one that spec.prompt is to
	// become.
	EventPromptNameConflict = EventReason(ReasonPromptNameConflict)
)

// Reasons of Events about a request that was refused: one that an annotation made.
const (
	// EventNotStarted surfaces when the chat has no message yet.
	EventNotStarted EventReason = "NotStarted"
	// EventIsArchived surfaces when the chat is archived.
	EventIsArchived EventReason = "IsArchived"
	// EventInvalidState surfaces when what is asked for is not possible in the chat's phase.
	EventInvalidState EventReason = "InvalidState"
	// EventNothingToCompact surfaces when no Assistant message follows the last boundary.
	EventNothingToCompact EventReason = "NothingToCompact"
	// EventNothingToClear surfaces when no message that the model sees follows the last boundary.
	EventNothingToClear EventReason = "NothingToClear"
	// EventTitleNotWritten surfaces when no model is to write another title:
	// spec.title says it, or no model writes titles.
	EventTitleNotWritten EventReason = "TitleNotWritten"
	// EventContextNotRefreshed surfaces when there is no workspace whose context could be read again.
	EventContextNotRefreshed EventReason = "ContextNotRefreshed"
)

// EventAction is what an Event says was being done.
type EventAction string

// The actions.
const (
	// EventActionGenerate is the work of a generation pod, or the way to it.
	EventActionGenerate EventAction = "Generate"
	// EventActionCommit is making a step part of the history.
	EventActionCommit EventAction = "Commit"
	// EventActionRequireAction is waiting for people and clients.
	EventActionRequireAction EventAction = "RequireAction"
	// EventActionWait is waiting for something, as status.wait says.
	EventActionWait EventAction = "Wait"
	// EventActionCompact is summarising the context, also as a request asked for it.
	EventActionCompact EventAction = "Compact"
	// EventActionDelete is the deletion of a chat that is no longer used.
	EventActionDelete EventAction = "Delete"
	// EventActionInterrupt is the request to stop the turn under way.
	EventActionInterrupt = EventAction(RequestInterrupt)
	// EventActionClear is the request to begin a new context.
	EventActionClear = EventAction(RequestClear)
	// EventActionTitle is the request for another title.
	EventActionTitle = EventAction(RequestTitle)
	// EventActionRefreshContext is the request to read again what the workspace says about how to work in it.
	EventActionRefreshContext = EventAction(RequestRefreshContext)
)
