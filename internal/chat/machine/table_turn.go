// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "slices"

// turnRules are what happens in the course of a turn, from its first attempt to its end.
var turnRules = slices.Concat(actionRules, attemptRules, finishRules)

// actionRules are about stopping a turn, and about turns that wait for a person or a client.
var actionRules = []Rule{
	{
		Event: Interrupt, Edges: to(Interrupting, Running),
		Effects: []Effect{ClearCompaction},
		Why:     "The phase changes at once; the attempt keeps its fence until it has handed over what was said so far.",
	},
	{
		Event: Interrupt, Edges: to(Running, RequiresAction),
		Effects: []Effect{CancelCalls, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "No attempt is under way; the pending calls are given up, and the turn is interrupted in the same write.",
	},
	{
		Event: CompleteRequiresAction, Edges: to(Running, RequiresAction),
		Effects: []Effect{AppendResults, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "All pending calls are answered in one message, so that no provider ever sees half of them.",
	},
	{
		Event: CancelRequiresAction, Edges: to(Running, RequiresAction),
		Effects: []Effect{CancelCalls, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The turn continues without the answers, and the model sees that they did not come.",
	},
	{
		Event: EnterRequiresAction, Edges: to(RequiresAction, Running), Guards: []Guard{CallsAreRead},
		Effects: []Effect{SetDeadline, ClearCompaction, ResetAttempt},
		Why:     "Only a person or a client can continue, and no pod has work until then.",
	},
}

// attemptRules are about the attempts at one step. They carry a requested compaction, because the attempts are at it.
var attemptRules = []Rule{
	{
		Event: RecordAttempt, Edges: stay(Running), Guards: []Guard{IsNotSuspended, ReferencesExist, BudgetsAreKept,
			SubChatsAreDone, RetryIsDue, WorkspaceIsReady, ServersAreReady, ModelHasRoom,
			CapacityIsLeft, PodIsAllowed},
		Effects: []Effect{NextAttempt},
		Why: "The number is durable before the work begins, so that a crash does not refill the budget of attempts. A " +
			"chat that only waits for its sub-chats takes no place, which they may need; nor does one that waits for its " +
			"workspace, for MCP servers, for a class or a model that does not exist, or for money.",
	},
	{
		Event: RecordRetry, Edges: stay(Running), Effects: []Effect{SetRetry},
		Why: "People see what the chat waits for, and a restart of the operator waits no longer than was planned.",
	},
	{
		Event: AttemptLost, Edges: stay(Running), Effects: []Effect{SetRetry},
		Why: "The chat no longer has a pod. That fences the lost one off, should it still be alive.",
	},
	{
		Event: ContextTooLong, Edges: stay(Running), Guards: []Guard{SomethingToCompact},
		Effects: []Effect{SetCompaction, BumpHistory, ResetAttempt},
		Why:     "A summary makes the context shorter, and the model is asked again after it.",
	},
	{
		Event: CommitStep, Edges: stay(Running),
		Effects: []Effect{AppendStep, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "A step is committed whole, and the next one has its own budget of attempts.",
	},
}

var finishRules = []Rule{
	{
		Event: FinishTurn, Edges: to(Waiting, Running), Guards: []Guard{QueueIsEmpty},
		Effects: []Effect{EndTurn, ClearCompaction, ResetAttempt},
		Why:     "Nothing is left to do.",
	},
	{
		Event: FinishTurn, Edges: stay(Running), Guards: []Guard{QueueNotEmpty},
		Effects: []Effect{EndTurn, CancelCalls, PromoteHead, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The next message begins in the write that ends the turn, so that it can never be forgotten.",
	},
	{
		Event: FinishError, Edges: to(Error, Running),
		Effects: []Effect{SetError, ClearCompaction, ResetAttempt},
		Why:     "The queue stays, because the next message would most likely fail in the same way.",
	},
	{
		Event: FinishInterruption, Edges: to(Waiting, Interrupting), Guards: []Guard{QueueIsEmpty},
		Effects: []Effect{AppendPartial, EndTurn, CancelCalls, BumpHistory, ResetAttempt},
		Why:     "What was said so far is kept, with an answer to each of its calls.",
	},
	{
		Event: FinishInterruption, Edges: to(Running, Interrupting), Guards: []Guard{QueueNotEmpty},
		Effects: []Effect{AppendPartial, EndTurn, CancelCalls, PromoteHead, BumpHistory, ResetAttempt},
		Why:     "The next message begins in the write that ends the interruption, so that it can never be forgotten.",
	},
}
