// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

import "slices"

// turnRules are what happens in the course of a turn, from its first attempt to its end.
var turnRules = slices.Concat(actionRules, attemptRules, finishRules)

// actionRules are about stopping a turn, and about turns that wait for a person or a client.
var actionRules = []Rule{
	{
		Event: Interrupt, Edges: slices.Concat(to(I0, R0), to(I1, R1)),
		Effects: []Effect{ClearCompaction},
		Why:     "The phase changes at once; the attempt keeps its fence until it has handed over what was said so far.",
	},
	{
		Event: Interrupt, Edges: slices.Concat(to(R0, A0), to(R1, A1)),
		Effects: []Effect{AnswerOutstandingCalls, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "No attempt is under way; the pending calls are cancelled, and the model sees that.",
	},
	{
		Event: CompleteRequiresAction, Edges: slices.Concat(to(R0, A0), to(R1, A1)),
		Guards:  []Guard{AllCallsAnswered, NoCallAnsweredTwice, NoOtherCallAnswered, AnswersAreJSON},
		Effects: []Effect{AppendResults, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "All pending calls are answered in one message, so that no provider ever sees half of them.",
	},
	{
		Event: CancelRequiresAction, Edges: slices.Concat(to(R0, A0), to(R1, A1)),
		Effects: []Effect{AnswerOutstandingCalls, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The turn goes on without the answers, and the model sees that they did not come.",
	},
	{
		Event: EnterRequiresAction, Edges: slices.Concat(to(A0, R0), to(A1, R1)), Guards: []Guard{CallsArePending},
		Effects: []Effect{SetDeadline, ClearCompaction, ResetAttempt},
		Why:     "Only a person or a client can go on, and no pod has work until then.",
	},
}

// attemptRules are about the attempts at one step. They carry a requested compaction, because the attempts are at it.
var attemptRules = []Rule{
	{
		Event: RecordAttempt, Edges: stay(R0, R1), Guards: []Guard{IsNotSuspended, SubChatsAreDone, RetryIsDue, CapacityIsLeft, PodIsAllowed},
		Effects: []Effect{NextAttempt},
		Why: "The number is durable before the work begins, so that a crash does not refill the budget of attempts. A chat that " +
			"only waits for its sub-chats takes no place, which they may need.",
	},
	{
		Event: RecordRetry, Edges: stay(R0, R1), Effects: []Effect{SetRetry},
		Why: "People see what the chat waits for, and a restart of the operator waits no longer than was planned.",
	},
	{
		Event: AttemptLost, Edges: stay(R0, R1), Effects: []Effect{SetRetry},
		Why: "No pod has the chat any more, which fences the lost one off, should it still be alive.",
	},
	{
		Event: CommitStep, Edges: stay(R0, R1),
		Effects: []Effect{AppendStep, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "A step is committed whole, and the next one has its own budget of attempts.",
	},
}

var finishRules = []Rule{
	{
		Event: FinishTurn, Edges: to(W, R0),
		Effects: []Effect{ClearCompaction, ResetAttempt},
		Why:     "Nothing is left to do.",
	},
	{
		Event: FinishTurn, Edges: to(R0, R1), Guards: []Guard{QueueRunsEmpty},
		Effects: []Effect{AnswerOutstandingCalls, PromoteHead, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The next message begins in the write that ends the turn, so that it can never be forgotten.",
	},
	{
		Event: FinishTurn, Edges: to(R1, R1), Guards: []Guard{QueueGoesOn},
		Effects: []Effect{AnswerOutstandingCalls, PromoteHead, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The next message begins in the write that ends the turn; the others wait.",
	},
	{
		Event: FinishError, Edges: to(E0, W), Effects: []Effect{SetError},
		Why: "Something went wrong outside a turn, and a person must see it.",
	},
	{
		Event: FinishError, Edges: slices.Concat(to(E0, R0), to(E1, R1)),
		Effects: []Effect{SetError, ClearCompaction, ResetAttempt},
		Why:     "The queue stays, because the next message would most likely fail in the same way.",
	},
	{
		Event: FinishInterruption, Edges: to(W, I0),
		Effects: []Effect{AppendPartial, AnswerOutstandingCalls, BumpHistory, ResetAttempt},
		Why:     "What was said so far is kept, with an answer to each of its calls.",
	},
	{
		Event: FinishInterruption, Edges: to(R0, I1), Guards: []Guard{QueueRunsEmpty},
		Effects: []Effect{AppendPartial, AnswerOutstandingCalls, PromoteHead, BumpHistory, ResetAttempt},
		Why:     "The next message begins in the write that ends the interruption, so that it can never be forgotten.",
	},
	{
		Event: FinishInterruption, Edges: to(R1, I1), Guards: []Guard{QueueGoesOn},
		Effects: []Effect{AppendPartial, AnswerOutstandingCalls, PromoteHead, BumpHistory, ResetAttempt},
		Why:     "The next message begins in the write that ends the interruption; the others wait.",
	},
}
