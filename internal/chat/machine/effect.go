// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// Effect is one thing that a transition does besides moving to its state. The effects of a transition are carried out
// in their order, and all of them in the one write that moves the state.
type Effect string

// The effects.
const (
	EnqueueMessage  Effect = "EnqueueMessage"
	EnqueueCutIn    Effect = "EnqueueCutIn"
	RemoveQueued    Effect = "RemoveQueued"
	ReorderQueue    Effect = "ReorderQueue"
	ClearQueue      Effect = "ClearQueue"
	TruncateFrom    Effect = "TruncateFrom"
	TakeHistory     Effect = "TakeHistory"
	AppendPartial   Effect = "AppendPartial"
	CancelCalls     Effect = "CancelCalls"
	AppendMessage   Effect = "AppendMessage"
	PromoteHead     Effect = "PromoteHead"
	AppendStep      Effect = "AppendStep"
	AppendResults   Effect = "AppendResults"
	BeginContext    Effect = "BeginContext"
	EndTurn         Effect = "EndTurn"
	SetError        Effect = "SetError"
	ClearError      Effect = "ClearError"
	SetDeadline     Effect = "SetDeadline"
	ClearDeadline   Effect = "ClearDeadline"
	SetCompaction   Effect = "SetCompaction"
	ClearCompaction Effect = "ClearCompaction"
	SetRetry        Effect = "SetRetry"
	NextAttempt     Effect = "NextAttempt"
	BumpHistory     Effect = "BumpHistory"
	ResetAttempt    Effect = "ResetAttempt"
)

type effectSpec struct {
	effect  Effect
	meaning string
}

var effectSpecs = []effectSpec{
	{EnqueueMessage, "Put the message last in the queue."},
	{EnqueueCutIn,
		"Put the message into the queue behind those that cut in before it, and all of these before the others."},
	{RemoveQueued, "Take the message out of the queue."},
	{ReorderQueue,
		"Move the message behind those in the queue that cut in before it, and all of these before the others."},
	{ClearQueue, "Drop every queued message."},
	{TruncateFrom,
		"Take the message and everything after it out of the history. What the attempt under way has produced is fenced " +
			"off with it."},
	{TakeHistory, "Begin with the copied history."},
	{AppendPartial, "Commit what the interrupted attempt had produced, if anything, to the history."},
	{CancelCalls, "Give up every tool call that has no result, and keep why, which the model reads in place of one; " +
		"nothing when there is none. Calls that the provider runs itself are exempt."},
	{AppendMessage, "Commit the User message to the history: it begins a turn."},
	{PromoteHead, "Take the first message out of the queue and commit it to the history: it begins a turn."},
	{AppendStep, "Commit the step to the history."},
	{AppendResults, "Commit the message with the results to the history."},
	{BeginContext, "Begin a new context behind the newest message: nothing before it reaches the model again."},
	{EndTurn, "Record how the turn ended, unless it ended before and was only taken up for a compaction."},
	{SetError, "Record why the turn cannot continue."},
	{ClearError, "Forget the recorded error."},
	{SetDeadline,
		"Record the pending calls and until when they can be answered: for limits.actionDeadlineSeconds from now."},
	{ClearDeadline, "Forget the pending calls and their deadline."},
	{SetCompaction, "Mark the chat for a compaction that ignores the threshold."},
	{ClearCompaction, "Forget the mark for a compaction, if there is one."},
	{SetRetry, "Record when and why the next attempt will be made; no pod has work until then."},
	{NextAttempt, "Count the attempt up, give it to a generation pod, and forget the recorded retry."},
	{BumpHistory, "Count the version of the history up: every attempt on the old one is fenced off."},
	{ResetAttempt, "No attempt is under way; the next one is number 1. Forget the recorded retry."},
}

// Effects lists every effect once.
func Effects() []Effect {
	out := make([]Effect, 0, len(effectSpecs))
	for _, e := range effectSpecs {
		out = append(out, e.effect)
	}
	return out
}

// Meaning says in one sentence what is done; it is empty for a word that is not an effect.
func (e Effect) Meaning() string {
	for _, s := range effectSpecs {
		if s.effect == e {
			return s.meaning
		}
	}
	return ""
}
