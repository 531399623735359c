// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

// Guard is the name of a condition over Facts that a rule of the table needs.
type Guard string

// The guards. The last six choose between rules; each other one, when it fails, refuses the event with its reason.
const (
	FirstMessageExists  Guard = "FirstMessageExists"
	RoomInQueue         Guard = "RoomInQueue"
	RoomOncePromoted    Guard = "RoomOncePromoted"
	RoomToCutIn         Guard = "RoomToCutIn"
	TargetExists        Guard = "TargetExists"
	TargetIsCommitted   Guard = "TargetIsCommitted"
	TargetIsUser        Guard = "TargetIsUser"
	TargetIsQueued      Guard = "TargetIsQueued"
	CallsArePending     Guard = "CallsArePending"
	AllCallsAnswered    Guard = "AllCallsAnswered"
	NoCallAnsweredTwice Guard = "NoCallAnsweredTwice"
	NoOtherCallAnswered Guard = "NoOtherCallAnswered"
	AnswersAreJSON      Guard = "AnswersAreJSON"
	SomethingToCompact  Guard = "SomethingToCompact"
	SomethingToClear    Guard = "SomethingToClear"
	FamilyIsIdle        Guard = "FamilyIsIdle"
	ParentIsNotArchived Guard = "ParentIsNotArchived"
	IsNotSuspended      Guard = "IsNotSuspended"
	SubChatsAreDone     Guard = "SubChatsAreDone"
	RetryIsDue          Guard = "RetryIsDue"
	CapacityIsLeft      Guard = "CapacityIsLeft"
	PodIsAllowed        Guard = "PodIsAllowed"

	QueueRunsEmpty Guard = "QueueRunsEmpty"
	QueueGoesOn    Guard = "QueueGoesOn"
	QueueIsEmpty   Guard = "QueueIsEmpty"
	QueueNotEmpty  Guard = "QueueNotEmpty"
	AnswerIsDue    Guard = "AnswerIsDue"
	NoAnswerIsDue  Guard = "NoAnswerIsDue"
)

type guardSpec struct {
	guard   Guard
	meaning string
	reason  Reason // empty for a guard that only chooses between rules
	holds   func(Facts) bool
}

var guardSpecs = []guardSpec{
	{FirstMessageExists, "The chat has a User message.", FirstMessageMissing,
		func(f Facts) bool { return f.FirstMessage }},
	{RoomInQueue, "Fewer messages are queued than may be.", QueueFull,
		func(f Facts) bool { return f.QueueLen < f.QueueCap }},
	{RoomOncePromoted, "No more messages are queued than may be: the head leaves the queue in the same write.", QueueFull,
		func(f Facts) bool { return f.QueueLen <= f.QueueCap }},
	{RoomToCutIn, "Fewer messages are queued than may be together with those that cut in, which have room of their own.", QueueFull,
		func(f Facts) bool { return f.QueueLen < f.QueueCap+f.CutInRoom }},
	{TargetExists, "The message belongs to the chat.", TargetNotFound,
		func(f Facts) bool { return f.Target != TargetMissing }},
	{TargetIsCommitted, "The message is part of the history.", TargetNotCommitted,
		func(f Facts) bool { return f.Target != TargetQueued }},
	{TargetIsUser, "The message is a User message.", TargetNotUser,
		func(f Facts) bool { return f.Target == TargetUser }},
	{TargetIsQueued, "The message is queued.", TargetNotQueued,
		func(f Facts) bool { return f.Target == TargetQueued }},
	{CallsArePending, "Tool calls wait for a person or a client.", NothingPending,
		func(f Facts) bool { return f.PendingCalls }},
	{AllCallsAnswered, "Every pending call has a result.", AnswerMissing,
		func(f Facts) bool { return f.Answers != AnswersMissing }},
	{NoCallAnsweredTwice, "No call has two results.", AnswerDuplicate,
		func(f Facts) bool { return f.Answers != AnswersDuplicate }},
	{NoOtherCallAnswered, "Every result answers a pending call.", AnswerUnexpected,
		func(f Facts) bool { return f.Answers != AnswersUnexpected }},
	{AnswersAreJSON, "Every result is valid JSON.", AnswerInvalid,
		func(f Facts) bool { return f.Answers != AnswersInvalid }},
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
	{SubChatsAreDone, "No call that is to be run waits for a sub-chat that is still at work.", SubChatsAtWork,
		func(f Facts) bool { return !f.SubChatsAtWork }},
	{RetryIsDue, "The time that was set for the next attempt, if any, has come.", RetryNotDue,
		func(f Facts) bool { return !f.RetryWaits }},
	{CapacityIsLeft, "Fewer chats are generating than may.", NoCapacity,
		func(f Facts) bool { return !f.NoCapacity }},
	{PodIsAllowed, "A generation pod has room, or the API server allows another one.", PodRefused,
		func(f Facts) bool { return !f.PodRefused }},
	{QueueRunsEmpty, "Exactly one message is queued, and it leaves the queue.", "",
		func(f Facts) bool { return f.QueueLen == 1 }},
	{QueueGoesOn, "More than one message is queued, and one leaves the queue.", "",
		func(f Facts) bool { return f.QueueLen > 1 }},
	{QueueIsEmpty, "No message is queued.", "",
		func(f Facts) bool { return f.QueueLen == 0 }},
	{QueueNotEmpty, "At least one message is queued.", "",
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
