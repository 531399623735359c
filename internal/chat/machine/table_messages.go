// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "slices"

// messageRules are what people's messages do: new ones, edited ones, deleted ones, queued ones.
var messageRules = slices.Concat(sendRules, editRules, deleteRules, queueRules)

var sendRules = []Rule{
	{
		Event: Create, Edges: to(Running, None),
		Effects: []Effect{AppendMessage, BumpHistory, ResetAttempt},
		Why:     "A chat begins with its first message, unless it is a fork.",
	},
	{
		Event: Fork, Edges: to(Running, None), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TakeHistory, BumpHistory, ResetAttempt},
		Why:     "The newest copied message has no answer in the fork.",
	},
	{
		Event: Fork, Edges: to(Waiting, None), Guards: []Guard{NoAnswerIsDue},
		Effects: []Effect{TakeHistory, BumpHistory, ResetAttempt},
		Why:     "The copied history ends with a reply.",
	},
	{
		Event: SendMessageQueue, Edges: to(Running, Waiting),
		Effects: []Effect{CancelCalls, AppendMessage, BumpHistory, ResetAttempt},
		Why:     "An idle chat takes a message up at once.",
	},
	{
		Event: SendMessageQueue, Edges: to(Running, Error), Guards: []Guard{RoomOncePromoted},
		Effects: []Effect{EnqueueMessage, CancelCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "Messages are answered in their order: the new one goes last, and the one that waited longest begins.",
	},
	{
		Event: SendMessageQueue, Edges: stay(Running, Interrupting, RequiresAction), Guards: []Guard{RoomInQueue},
		Effects: []Effect{EnqueueMessage},
		Why:     "A busy chat lets the message wait; what is under way continues, a requested compaction included.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(Running, Waiting),
		Effects: []Effect{CancelCalls, AppendMessage, BumpHistory, ResetAttempt},
		Why:     "With nothing to interrupt it is an ordinary message.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(Running, Error), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueMessage, CancelCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "With nothing to interrupt it is an ordinary message, and those that came before it go first.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(Interrupting, Running), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueCutIn, ClearCompaction},
		Why:     "The message is next once the partial reply is finished, behind others that cut in before it.",
	},
	{
		Event: SendMessageInterrupt, Edges: stay(Interrupting), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueCutIn},
		Why:     "The turn is being interrupted already; messages that cut in are answered in their order.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(Running, RequiresAction), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueCutIn, CancelCalls, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The pending calls are given up, and the turn is interrupted in the same write: the message is next.",
	},
}

var editRules = []Rule{
	{
		Event: EditMessage, Edges: to(Running, Waiting),
		Effects: []Effect{TruncateFrom, CancelCalls, AppendMessage, BumpHistory, ResetAttempt},
		Why:     "The chat runs again from the edited message.",
	},
	{
		Event: EditMessage, Edges: to(Running, Error),
		Effects: []Effect{ClearQueue, TruncateFrom, CancelCalls, AppendMessage, ClearError, BumpHistory, ResetAttempt},
		Why:     "Queued messages continued a conversation that no longer exists, and the error belonged to it.",
	},
	{
		Event: EditMessage, Edges: to(Running, Running),
		Effects: []Effect{ClearQueue, TruncateFrom, CancelCalls, AppendMessage, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The reply under way answers a conversation that no longer exists.",
	},
	{
		Event: EditMessage, Edges: to(Running, Interrupting),
		Effects: []Effect{ClearQueue, TruncateFrom, CancelCalls, AppendMessage, BumpHistory, ResetAttempt},
		Why:     "The interrupted reply belongs to a conversation that no longer exists, so it is not kept.",
	},
	{
		Event: EditMessage, Edges: to(Running, RequiresAction),
		Effects: []Effect{ClearQueue, TruncateFrom, CancelCalls, AppendMessage, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The pending calls belong to a conversation that no longer exists.",
	},
}

// deleteRules are in two halves: a reply that was deleted is generated again; where nothing is to be answered, the chat
// is as at the end of a turn.
var deleteRules = []Rule{
	{
		Event: DeleteMessage, Edges: to(Running, Waiting), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, BumpHistory, ResetAttempt},
		Why:     "The newest message that is left no longer has an answer.",
	},
	{
		Event: DeleteMessage, Edges: to(Running, Error), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, ClearError, BumpHistory, ResetAttempt},
		Why: "The newest message that is left no longer has an answer, and the error belonged to what was deleted or " +
			"after it.",
	},
	{
		Event: DeleteMessage, Edges: to(Running, Running), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The reply under way answers a conversation that no longer exists.",
	},
	{
		Event: DeleteMessage, Edges: to(Running, Interrupting), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, BumpHistory, ResetAttempt},
		Why:     "The interrupted reply belongs to a conversation that no longer exists, so it is not kept.",
	},
	{
		Event: DeleteMessage, Edges: to(Running, RequiresAction), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "What is left is worked on again, the calls in it included.",
	},
	{
		Event: DeleteMessage, Edges: stay(Waiting), Guards: []Guard{NoAnswerIsDue},
		Effects: []Effect{TruncateFrom, BumpHistory, ResetAttempt},
		Why:     "What is left ends with a reply, or nothing is left.",
	},
	{
		Event: DeleteMessage, Edges: to(Waiting, Error), Guards: []Guard{NoAnswerIsDue, QueueIsEmpty},
		Effects: []Effect{TruncateFrom, ClearError, BumpHistory, ResetAttempt},
		Why:     "The message that failed is gone, and its error with it.",
	},
	{
		Event: DeleteMessage, Edges: to(Waiting, Running, Interrupting), Guards: []Guard{NoAnswerIsDue, QueueIsEmpty},
		Effects: []Effect{TruncateFrom, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The reply under way is no longer needed.",
	},
	{
		Event: DeleteMessage, Edges: to(Waiting, RequiresAction), Guards: []Guard{NoAnswerIsDue, QueueIsEmpty},
		Effects: []Effect{TruncateFrom, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The results of the pending calls are no longer needed.",
	},
	{
		Event: DeleteMessage, Edges: to(Running, Error), Guards: []Guard{NoAnswerIsDue, QueueNotEmpty},
		Effects: []Effect{TruncateFrom, CancelCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "The message that failed is gone, so the next one begins.",
	},
	{
		Event: DeleteMessage, Edges: to(Running, Running, Interrupting), Guards: []Guard{NoAnswerIsDue, QueueNotEmpty},
		Effects: []Effect{TruncateFrom, CancelCalls, PromoteHead, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The reply under way is no longer needed, so the next message begins.",
	},
	{
		Event: DeleteMessage, Edges: to(Running, RequiresAction), Guards: []Guard{NoAnswerIsDue, QueueNotEmpty},
		Effects: []Effect{TruncateFrom, CancelCalls, PromoteHead, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The pending calls are no longer needed, so the next message begins.",
	},
}

var queueRules = []Rule{
	{
		Event: DeleteQueued, Edges: stay(Error, Running, Interrupting, RequiresAction),
		Effects: []Effect{RemoveQueued},
		Why:     "The queue changes and the history does not; an error stays, and so does a compaction that was asked for.",
	},
	{
		Event: PromoteQueued, Edges: to(Running, Error),
		Effects: []Effect{ReorderQueue, CancelCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "Nothing is under way, so the message is taken up at once, or one that cut in before it.",
	},
	{
		Event: PromoteQueued, Edges: to(Interrupting, Running),
		Effects: []Effect{ReorderQueue, ClearCompaction},
		Why: "The turn is interrupted, and the message is next once its partial reply is finished, behind others that " +
			"cut in before it.",
	},
	{
		Event: PromoteQueued, Edges: stay(Interrupting),
		Effects: []Effect{ReorderQueue},
		Why:     "The turn is being interrupted already; the message is next, behind others that cut in before it.",
	},
	{
		Event: PromoteQueued, Edges: to(Running, RequiresAction),
		Effects: []Effect{ReorderQueue, CancelCalls, PromoteHead, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The pending calls are given up, and the message is taken up at once, or one that cut in before it.",
	},
}
