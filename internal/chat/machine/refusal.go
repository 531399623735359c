// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// Reason is why an event was refused; empty for one that was not. Where it is not empty, nothing may be changed.
type Reason string

// The reasons. There are no others.
const (
	NotStarted        Reason = "NotStarted"
	AlreadyStarted    Reason = "AlreadyStarted"
	AlreadyArchived   Reason = "AlreadyArchived"
	NotArchived       Reason = "NotArchived"
	IsArchived        Reason = "IsArchived"
	StateInvalid      Reason = "StateInvalid"
	StateValid        Reason = "StateValid"
	InvalidState      Reason = "InvalidState"
	QueueFull         Reason = "QueueFull"
	CallsUnread       Reason = "CallsUnread"
	NothingToCompact  Reason = "NothingToCompact"
	NothingToClear    Reason = "NothingToClear"
	FamilyBusy        Reason = "FamilyBusy"
	ParentArchived    Reason = "ParentArchived"
	Suspended         Reason = "Suspended"
	ReferenceMissing  Reason = "ReferenceMissing"
	OverBudget        Reason = "OverBudget"
	SubChatsAtWork    Reason = "SubChatsAtWork"
	WorkspaceStarting Reason = "WorkspaceStarting"
	ServersStarting   Reason = "ServersStarting"
	RetryNotDue       Reason = "RetryNotDue"
	ModelLimited      Reason = "ModelLimited"
	NoCapacity        Reason = "NoCapacity"
	PodRejected       Reason = "PodRejected"
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
	{InvalidState, "this is not possible in the chat's phase"},
	{QueueFull, "the queue holds as many messages as it may"},
	{CallsUnread, "the reply that made the calls was not read"},
	{NothingToCompact, "no Assistant message follows the last boundary, so there is nothing to compact"},
	{NothingToClear, "no message that the model sees follows the last boundary, so there is nothing to clear"},
	{FamilyBusy, "a descendant of the chat is still at work"},
	{ParentArchived, "the chat's parent is archived; take it back first"},
	{Suspended, "the chat, or one above it, is suspended"},
	{ReferenceMissing, "the ChatClass of the chat, or the ChatModelConfig that answers, does not exist"},
	{OverBudget, "a budget is reached, or could not be kept"},
	{SubChatsAtWork, "a sub-chat that the calls wait for is still at work"},
	{WorkspaceStarting, "the workspace that the calls need is still starting"},
	{ServersStarting, "an MCP server that the chat refers to, or the workspace in which one runs, is still starting"},
	{RetryNotDue, "the time for the next attempt has not come"},
	{ModelLimited, "the model is called as often as it may be, or its provider asked to wait"},
	{NoCapacity, "as many chats are generating as may"},
	{PodRejected, "the API server refuses a generation pod"},
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
