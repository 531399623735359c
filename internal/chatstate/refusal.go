// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

import "fmt"

// Reason is why an event was refused.
type Reason string

// The reasons. There are no others.
const (
	NotStarted           Reason = "NotStarted"
	AlreadyStarted       Reason = "AlreadyStarted"
	AlreadyArchived      Reason = "AlreadyArchived"
	NotArchived          Reason = "NotArchived"
	IsArchived           Reason = "IsArchived"
	StateInvalid         Reason = "StateInvalid"
	StateValid           Reason = "StateValid"
	NotInThisState       Reason = "NotInThisState"
	FactsContradictState Reason = "FactsContradictState"
	FirstMessageMissing  Reason = "FirstMessageMissing"
	QueueFull            Reason = "QueueFull"
	TargetNotFound       Reason = "TargetNotFound"
	TargetNotCommitted   Reason = "TargetNotCommitted"
	TargetNotUser        Reason = "TargetNotUser"
	TargetNotQueued      Reason = "TargetNotQueued"
	NothingPending       Reason = "NothingPending"
	AnswerMissing        Reason = "AnswerMissing"
	AnswerDuplicate      Reason = "AnswerDuplicate"
	AnswerUnexpected     Reason = "AnswerUnexpected"
	AnswerInvalid        Reason = "AnswerInvalid"
	NothingToCompact     Reason = "NothingToCompact"
	NothingToClear       Reason = "NothingToClear"
	FamilyBusy           Reason = "FamilyBusy"
	ParentArchived       Reason = "ParentArchived"
	Suspended            Reason = "Suspended"
	SubChatsAtWork       Reason = "SubChatsAtWork"
	RetryNotDue          Reason = "RetryNotDue"
	NoCapacity           Reason = "NoCapacity"
	PodRefused           Reason = "PodRefused"
)

type reasonSpec struct {
	reason  Reason
	meaning string
}

var reasonSpecs = []reasonSpec{
	{NotStarted, "the chat has no message yet"},
	{AlreadyStarted, "the chat has begun already"},
	{AlreadyArchived, "the chat is archived already"},
	{NotArchived, "the chat is not archived"},
	{IsArchived, "the chat is archived; take it back first"},
	{StateInvalid, "the chat is in a combination of phase, queue and archived that must not exist"},
	{StateValid, "there is nothing to repair"},
	{NotInThisState, "this is not possible in the chat's phase"},
	{FactsContradictState, "the length of the queue does not agree with the state"},
	{FirstMessageMissing, "there is no User message to begin with"},
	{QueueFull, "the queue holds as many messages as it may"},
	{TargetNotFound, "the chat has no such message"},
	{TargetNotCommitted, "the message is queued and not part of the history"},
	{TargetNotUser, "only User messages can be edited"},
	{TargetNotQueued, "the message is not queued"},
	{NothingPending, "no tool call waits for a person or a client"},
	{AnswerMissing, "a pending tool call has no result; all must be answered at once"},
	{AnswerDuplicate, "a tool call has two results"},
	{AnswerUnexpected, "a result answers no pending tool call"},
	{AnswerInvalid, "a result is not valid JSON"},
	{NothingToCompact, "no Assistant message follows the last boundary, so there is nothing to compact"},
	{NothingToClear, "no message that the model sees follows the last boundary, so there is nothing to clear"},
	{FamilyBusy, "a descendant of the chat is still at work"},
	{ParentArchived, "the chat's parent is archived; take it back first"},
	{Suspended, "the chat, or one above it, is suspended"},
	{SubChatsAtWork, "a sub-chat that the calls wait for is still at work"},
	{RetryNotDue, "the time for the next attempt has not come"},
	{NoCapacity, "as many chats are generating as may"},
	{PodRefused, "the API server refuses a generation pod"},
}

// Reasons lists every reason once.
func Reasons() []Reason {
	out := make([]Reason, 0, len(reasonSpecs))
	for _, r := range reasonSpecs {
		out = append(out, r.reason)
	}
	return out
}

// Meaning says what is wrong, as part of a sentence; it is empty for a word that is not a reason.
func (r Reason) Meaning() string {
	for _, s := range reasonSpecs {
		if s.reason == r {
			return s.meaning
		}
	}
	return ""
}

// Refusal is the error for an event that is not possible. Nothing may be changed.
type Refusal struct {
	// State in which the event came.
	State State
	// Event that was refused.
	Event Event
	// Reason of the refusal.
	Reason Reason
}

// Error says what was refused and why.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s refused in state %s: %s (%s)", r.Event, r.State, r.Reason.Meaning(), r.Reason)
}
