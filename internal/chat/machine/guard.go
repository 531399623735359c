// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// Guard is the name of a condition over Facts that a rule of the table needs.
type Guard string

// The guards. The last four choose between rules; each other one, when it fails, refuses the event with its reason.
const (
	RoomInQueue         Guard = "RoomInQueue"
	RoomOncePromoted    Guard = "RoomOncePromoted"
	RoomToCutIn         Guard = "RoomToCutIn"
	CallsAreRead        Guard = "CallsAreRead"
	SomethingToCompact  Guard = "SomethingToCompact"
	SomethingToClear    Guard = "SomethingToClear"
	FamilyIsIdle        Guard = "FamilyIsIdle"
	ParentIsNotArchived Guard = "ParentIsNotArchived"
	IsNotSuspended      Guard = "IsNotSuspended"
	ReferencesExist     Guard = "ReferencesExist"
	BudgetsAreKept      Guard = "BudgetsAreKept"
	SubChatsAreDone     Guard = "SubChatsAreDone"
	WorkspaceIsReady    Guard = "WorkspaceIsReady"
	ServersAreReady     Guard = "ServersAreReady"
	RetryIsDue          Guard = "RetryIsDue"
	ModelHasRoom        Guard = "ModelHasRoom"
	CapacityIsLeft      Guard = "CapacityIsLeft"
	PodIsAllowed        Guard = "PodIsAllowed"

	QueueIsEmpty  Guard = "QueueIsEmpty"
	QueueNotEmpty Guard = "QueueNotEmpty"
	AnswerIsDue   Guard = "AnswerIsDue"
	NoAnswerIsDue Guard = "NoAnswerIsDue"
)

type guardSpec struct {
	guard   Guard
	meaning string
	reason  Reason // empty for a guard that only chooses between rules
	holds   func(Facts) bool
}

var guardSpecs = []guardSpec{
	{RoomInQueue, "Fewer messages are queued than may be.", QueueFull,
		func(f Facts) bool { return f.QueueLen < f.QueueCap }},
	{RoomOncePromoted, "No more messages are queued than may be: the head leaves the queue in the same write.", QueueFull,
		func(f Facts) bool { return f.QueueLen <= f.QueueCap }},
	{RoomToCutIn, "Fewer messages are queued than may be together with those that cut in, which have room of their own.",
		QueueFull,
		func(f Facts) bool { return f.QueueLen < f.QueueCap+f.CutInRoom }},
	{CallsAreRead, "The reply that made the calls was read, so that people and clients can be told what is asked of them.",
		CallsUnread,
		func(f Facts) bool { return !f.CallsUnread }},
	{SomethingToCompact, "An Assistant message follows the last boundary.", NothingToCompact,
		func(f Facts) bool { return f.Compactable }},
	{SomethingToClear, "A message that the model sees follows the last boundary.", NothingToClear,
		func(f Facts) bool { return f.Clearable }},
	{FamilyIsIdle, "Every descendant is Waiting or in Error.", FamilyBusy,
		func(f Facts) bool { return !f.FamilyBusy }},
	{ParentIsNotArchived, "The parent, if any, is not archived.", ParentArchived,
		func(f Facts) bool { return !f.ParentArchived }},
	{IsNotSuspended, "Neither the chat nor a chat above it is suspended.", Suspended,
		func(f Facts) bool { return !f.Suspended }},
	{ReferencesExist, "The ChatClass of the chat and the ChatModelConfig that answers exist.", ReferenceMissing,
		func(f Facts) bool { return !f.ReferenceMissing }},
	{BudgetsAreKept, "The action calls no model, or every budget that counts its cost has something left.", OverBudget,
		func(f Facts) bool { return !f.OverBudget }},
	{SubChatsAreDone, "No call that is to be run waits for a sub-chat that is still at work.", SubChatsAtWork,
		func(f Facts) bool { return !f.SubChatsAtWork }},
	{WorkspaceIsReady, "No call that is to be run needs a workspace that is still starting.", WorkspaceStarting,
		func(f Facts) bool { return !f.WorkspaceStarting }},
	{ServersAreReady, "Neither an MCP server that the chat refers to is still starting, nor the workspace in which one " +
		"runs, or it was waited for long enough.",
		ServersStarting, func(f Facts) bool { return !f.ServersStarting }},
	{RetryIsDue, "The time that was set for the next attempt, if any, has come.", RetryNotDue,
		func(f Facts) bool { return !f.RetryNotDue }},
	{ModelHasRoom, "The limits of the ChatModelConfig, and its provider, let the model be called now.", ModelLimited,
		func(f Facts) bool { return !f.ModelLimited }},
	{CapacityIsLeft, "Fewer chats are generating than may.", NoCapacity,
		func(f Facts) bool { return !f.NoCapacity }},
	{PodIsAllowed, "A generation pod has room, or the API server allows another one.", PodRejected,
		func(f Facts) bool { return !f.PodRejected }},
	{QueueIsEmpty, "No message is queued, or only held ones.", "",
		func(f Facts) bool { return f.QueueLen == 0 }},
	{QueueNotEmpty, "At least one message is queued and not held.", "",
		func(f Facts) bool { return f.QueueLen > 0 }},
	{AnswerIsDue, "What is left of the history ends with something that the model must answer.", "",
		func(f Facts) bool { return f.Unanswered }},
	{NoAnswerIsDue, "What is left of the history ends with a reply, or nothing is left.", "",
		func(f Facts) bool { return !f.Unanswered }},
}

var specOfGuard = func() map[Guard]guardSpec {
	m := make(map[Guard]guardSpec, len(guardSpecs))
	for _, g := range guardSpecs {
		m[g.guard] = g
	}
	return m
}()

// Guards lists every guard once.
func Guards() []Guard {
	out := make([]Guard, 0, len(guardSpecs))
	for _, g := range guardSpecs {
		out = append(out, g.guard)
	}
	return out
}

// Meaning says in one sentence what must hold; it is empty for a word that is not a guard.
func (g Guard) Meaning() string { return specOfGuard[g].meaning }

// Refuses is the reason with which the event is refused when the guard fails; empty for a guard that only chooses
// between rules.
func (g Guard) Refuses() Reason { return specOfGuard[g].reason }
