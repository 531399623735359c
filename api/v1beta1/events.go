// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// EventReason is the reason of an Event. Events are about a Chat, or a ChatClass with spare pods, and what goes
// well makes none. Every ErrorReason is one, too: a turn failed with it.
type EventReason string

// Reasons of Events about the work on a turn.
const (
	// EventAttemptLost surfaces when the generation pod of an attempt disappeared or never started, or when the attempt
	// can have no result; it is made again. Action: Generate.
	EventAttemptLost EventReason = "AttemptLost"
	// EventActionDeadlineExceeded surfaces when no one answered or approved the pending tool calls in time. Action:
	// RequireAction.
	EventActionDeadlineExceeded EventReason = "ActionDeadlineExceeded"
	// EventSummarizerUnavailable surfaces when the model that compaction.modelConfigRef names does not exist or cannot
	// write a summary; the chat's model writes it. Action: Compact.
	EventSummarizerUnavailable EventReason = "SummarizerUnavailable"
	// EventExpired surfaces when the chat was deleted after its retention: docs/how-to/retention.md. Action: Delete.
	EventExpired EventReason = "Expired"
	// EventReplyTooLarge surfaces when a reply was cut at 1 MiB, the limit of an object. Action: Commit.
	EventReplyTooLarge = EventReason(ReasonReplyTooLarge)
	// EventGenerationPodRejected surfaces when the API server begins to refuse the generation pod that the next step
	// needs. Action: Generate.
	EventGenerationPodRejected = EventReason(ReasonGenerationPodRejected)
	// EventAgentRejected surfaces when the API server refuses a sub-chat that the model starts, or a message to one; the
	// note has its words. Action: Commit.
	EventAgentRejected EventReason = "AgentRejected"
	// EventPromptRejected surfaces when the API server begins to refuse the message of spec.prompt. Action: Generate.
	EventPromptRejected = EventReason(ReasonPromptRejected)
	// EventWaiting surfaces when the chat waits for a person or a client, or has waited for something else for 10 s; the
	// note has the reason and the message of status.wait. Action: Wait.
	EventWaiting EventReason = "Waiting"
	// EventPromptNameConflict surfaces when another message is found to have the name of the message of spec.prompt.
	// Action: Generate.
	EventPromptNameConflict = EventReason(ReasonPromptNameConflict)
)

// Reasons of Events about a request that was refused: one that an annotation made.
const (
	// EventNotStarted surfaces when a request is refused because the chat has no message yet.
	EventNotStarted EventReason = "NotStarted"
	// EventIsArchived surfaces when a request is refused because the chat is archived.
	EventIsArchived EventReason = "IsArchived"
	// EventInvalidState surfaces when a request is not possible in the chat's phase.
	EventInvalidState EventReason = "InvalidState"
	// EventNothingToCompact surfaces when no Assistant message follows the last boundary.
	EventNothingToCompact EventReason = "NothingToCompact"
	// EventNothingToClear surfaces when no message that the model sees follows the last boundary.
	EventNothingToClear EventReason = "NothingToClear"
	// EventTitleNotWritten surfaces when spec.title sets the title, or no model writes titles.
	EventTitleNotWritten EventReason = "TitleNotWritten"
	// EventContextNotRefreshed surfaces when the chat has no workspace whose context could be read again.
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
	// EventActionWait is waiting, as status.wait describes.
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
	// EventActionRefreshContext is the request to read the context files of the workspace again.
	EventActionRefreshContext = EventAction(RequestRefreshContext)
)
