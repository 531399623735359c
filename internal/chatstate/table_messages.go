// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

import "slices"

// messageRules are what people's messages do: new ones, edited ones, queued ones.
var messageRules = slices.Concat(sendRules, editRules, deleteRules, queueRules)

var sendRules = []Rule{
	{
		Event: Create, Edges: to(R0, None), Guards: []Guard{FirstMessageExists},
		Effects: []Effect{AppendMessage, BumpHistory, ResetAttempt},
		Why:     "A chat begins with its first message and in no other way.",
	},
	{
		Event: SendMessageQueue, Edges: to(R0, W),
		Effects: []Effect{AnswerOutstandingCalls, AppendMessage, BumpHistory, ResetAttempt},
		Why:     "An idle chat takes a message up at once.",
	},
	{
		Event: SendMessageQueue, Edges: to(R0, E0),
		Effects: []Effect{AnswerOutstandingCalls, AppendMessage, ClearError, BumpHistory, ResetAttempt},
		Why:     "A new message goes on after an error.",
	},
	{
		Event: SendMessageQueue, Edges: to(R1, E1), Guards: []Guard{RoomOncePromoted},
		Effects: []Effect{EnqueueMessage, AnswerOutstandingCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "Messages are answered in their order: the new one goes last, and the one that waited longest begins.",
	},
	{
		Event: SendMessageQueue, Guards: []Guard{RoomInQueue},
		Edges:   slices.Concat(to(R1, R0, R1), to(I1, I0, I1), to(A1, A0, A1)),
		Effects: []Effect{EnqueueMessage},
		Why:     "A busy chat lets the message wait; what is under way goes on, a requested compaction included.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(R0, W),
		Effects: []Effect{AnswerOutstandingCalls, AppendMessage, BumpHistory, ResetAttempt},
		Why:     "With nothing to interrupt it is an ordinary message.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(R0, E0),
		Effects: []Effect{AnswerOutstandingCalls, AppendMessage, ClearError, BumpHistory, ResetAttempt},
		Why:     "With nothing to interrupt it is an ordinary message.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(R1, E1), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueMessage, AnswerOutstandingCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "With nothing to interrupt it is an ordinary message, and those that came before it go first.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(I1, R0, R1), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueCutIn, ClearCompaction},
		Why:     "The message is next once the partial reply is finished, behind others that cut in before it.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(I1, I0, I1), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueCutIn},
		Why:     "The turn is being interrupted already; messages that cut in are answered in their order.",
	},
	{
		Event: SendMessageInterrupt, Edges: to(R1, A0, A1), Guards: []Guard{RoomToCutIn},
		Effects: []Effect{EnqueueCutIn, AnswerOutstandingCalls, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "The pending calls are cancelled; the model sees that and ends its turn, then the message is next.",
	},
}

var editRules = []Rule{
	{
		Event: EditMessage, Edges: to(R0, W), Guards: []Guard{TargetExists, TargetIsCommitted, TargetIsUser},
		Effects: []Effect{TruncateFrom, AnswerOutstandingCalls, AppendMessage, BumpHistory, ResetAttempt},
		Why:     "The chat runs again from the edited message.",
	},
	{
		Event: EditMessage, Edges: to(R0, E0, E1), Guards: []Guard{TargetExists, TargetIsCommitted, TargetIsUser},
		Effects: []Effect{
			ClearQueue, TruncateFrom, AnswerOutstandingCalls, AppendMessage, ClearError, BumpHistory, ResetAttempt,
		},
		Why: "Queued messages continued a conversation that no longer exists, and the error belonged to it.",
	},
	{
		Event: EditMessage, Edges: to(R0, R0, R1), Guards: []Guard{TargetExists, TargetIsCommitted, TargetIsUser},
		Effects: []Effect{
			ClearQueue, DiscardPartial, TruncateFrom, AnswerOutstandingCalls, AppendMessage, ClearCompaction,
			BumpHistory, ResetAttempt,
		},
		Why: "The reply under way answers a conversation that no longer exists.",
	},
	{
		Event: EditMessage, Edges: to(R0, I0, I1), Guards: []Guard{TargetExists, TargetIsCommitted, TargetIsUser},
		Effects: []Effect{
			ClearQueue, DiscardPartial, TruncateFrom, AnswerOutstandingCalls, AppendMessage, BumpHistory, ResetAttempt,
		},
		Why: "The interrupted reply belongs to a conversation that no longer exists, so it is not kept.",
	},
	{
		Event: EditMessage, Edges: to(R0, A0, A1), Guards: []Guard{TargetExists, TargetIsCommitted, TargetIsUser},
		Effects: []Effect{
			ClearQueue, TruncateFrom, AnswerOutstandingCalls, AppendMessage, ClearDeadline, BumpHistory, ResetAttempt,
		},
		Why: "The pending calls belong to a conversation that no longer exists.",
	},
}

// deleteRules are in two halves: a reply that was deleted is generated anew; where nothing is to be answered, the chat
// is as at the end of a turn.
var deleteRules = []Rule{
	{
		Event: DeleteMessage, Edges: to(R0, W), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, BumpHistory, ResetAttempt},
		Why:     "The newest message that is left has no answer any more.",
	},
	{
		Event: DeleteMessage, Edges: slices.Concat(to(R0, E0), to(R1, E1)), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, ClearError, BumpHistory, ResetAttempt},
		Why:     "The newest message that is left has no answer any more, and the error belonged to what was deleted or after it.",
	},
	{
		Event: DeleteMessage, Edges: slices.Concat(to(R0, R0), to(R1, R1)), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{DiscardPartial, TruncateFrom, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "The reply under way answers a conversation that no longer exists.",
	},
	{
		Event: DeleteMessage, Edges: slices.Concat(to(R0, I0), to(R1, I1)), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{DiscardPartial, TruncateFrom, BumpHistory, ResetAttempt},
		Why:     "The interrupted reply belongs to a conversation that no longer exists, so it is not kept.",
	},
	{
		Event: DeleteMessage, Edges: slices.Concat(to(R0, A0), to(R1, A1)), Guards: []Guard{AnswerIsDue},
		Effects: []Effect{TruncateFrom, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "What is left is worked on again, the calls in it included.",
	},
	{
		Event: DeleteMessage, Edges: stay(W), Guards: []Guard{NoAnswerIsDue},
		Effects: []Effect{TruncateFrom, BumpHistory, ResetAttempt},
		Why:     "What is left ends with a reply, or nothing is left.",
	},
	{
		Event: DeleteMessage, Edges: to(W, E0), Guards: []Guard{NoAnswerIsDue},
		Effects: []Effect{TruncateFrom, ClearError, BumpHistory, ResetAttempt},
		Why:     "The message that failed is gone, and its error with it.",
	},
	{
		Event: DeleteMessage, Edges: to(W, R0, I0), Guards: []Guard{NoAnswerIsDue},
		Effects: []Effect{DiscardPartial, TruncateFrom, ClearCompaction, BumpHistory, ResetAttempt},
		Why:     "Nobody waits for the reply under way any more.",
	},
	{
		Event: DeleteMessage, Edges: to(W, A0), Guards: []Guard{NoAnswerIsDue},
		Effects: []Effect{TruncateFrom, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "Nobody waits for the results of the pending calls any more.",
	},
	{
		Event: DeleteMessage, Edges: to(R0, E1), Guards: []Guard{NoAnswerIsDue, QueueRunsEmpty},
		Effects: []Effect{TruncateFrom, AnswerOutstandingCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "The message that failed is gone, so the next one begins.",
	},
	{
		Event: DeleteMessage, Edges: to(R1, E1), Guards: []Guard{NoAnswerIsDue, QueueGoesOn},
		Effects: []Effect{TruncateFrom, AnswerOutstandingCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt},
		Why:     "The message that failed is gone, so the next one begins.",
	},
	{
		Event: DeleteMessage, Edges: to(R0, R1, I1), Guards: []Guard{NoAnswerIsDue, QueueRunsEmpty},
		Effects: []Effect{
			DiscardPartial, TruncateFrom, AnswerOutstandingCalls, PromoteHead, ClearCompaction, BumpHistory, ResetAttempt,
		},
		Why: "Nobody waits for the reply under way any more, so the next message begins.",
	},
	{
		Event: DeleteMessage, Edges: to(R1, R1, I1), Guards: []Guard{NoAnswerIsDue, QueueGoesOn},
		Effects: []Effect{
			DiscardPartial, TruncateFrom, AnswerOutstandingCalls, PromoteHead, ClearCompaction, BumpHistory, ResetAttempt,
		},
		Why: "Nobody waits for the reply under way any more, so the next message begins; the others wait.",
	},
	{
		Event: DeleteMessage, Edges: to(R0, A1), Guards: []Guard{NoAnswerIsDue, QueueRunsEmpty},
		Effects: []Effect{TruncateFrom, AnswerOutstandingCalls, PromoteHead, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "Nobody waits for the pending calls any more, so the next message begins.",
	},
	{
		Event: DeleteMessage, Edges: to(R1, A1), Guards: []Guard{NoAnswerIsDue, QueueGoesOn},
		Effects: []Effect{TruncateFrom, AnswerOutstandingCalls, PromoteHead, ClearDeadline, BumpHistory, ResetAttempt},
		Why:     "Nobody waits for the pending calls any more, so the next message begins; the others wait.",
	},
}

var queueRules = []Rule{
	{
		Event: DeleteQueued, Guards: []Guard{TargetIsQueued, QueueRunsEmpty},
		Edges:   slices.Concat(to(R0, R1), to(E0, E1), to(I0, I1), to(A0, A1)),
		Effects: []Effect{RemoveQueued},
		Why:     "The queue changes and the history does not; an error stays, and so does a compaction that was asked for.",
	},
	{
		Event: DeleteQueued, Guards: []Guard{TargetIsQueued, QueueGoesOn}, Edges: stay(R1, E1, I1, A1),
		Effects: []Effect{RemoveQueued},
		Why:     "The queue changes and the history does not; an error stays, and so does a compaction that was asked for.",
	},
	{
		Event: PromoteQueued, Guards: []Guard{TargetIsQueued, QueueRunsEmpty}, Edges: to(R0, E1),
		Effects: []Effect{
			ReorderQueue, AnswerOutstandingCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt,
		},
		Why: "Nothing is under way, so the message is taken up at once, or one that cut in before it.",
	},
	{
		Event: PromoteQueued, Guards: []Guard{TargetIsQueued, QueueGoesOn}, Edges: to(R1, E1),
		Effects: []Effect{
			ReorderQueue, AnswerOutstandingCalls, PromoteHead, ClearError, BumpHistory, ResetAttempt,
		},
		Why: "Nothing is under way, so the message is taken up at once, or one that cut in before it; the others wait.",
	},
	{
		Event: PromoteQueued, Guards: []Guard{TargetIsQueued}, Edges: to(I1, R1),
		Effects: []Effect{ReorderQueue, ClearCompaction},
		Why:     "The turn is interrupted, and the message is next once its partial reply is finished, behind others that cut in before it.",
	},
	{
		Event: PromoteQueued, Guards: []Guard{TargetIsQueued}, Edges: stay(I1),
		Effects: []Effect{ReorderQueue},
		Why:     "The turn is being interrupted already; the message is next, behind others that cut in before it.",
	},
	{
		Event: PromoteQueued, Guards: []Guard{TargetIsQueued, QueueRunsEmpty}, Edges: to(R0, A1),
		Effects: []Effect{
			ReorderQueue, AnswerOutstandingCalls, PromoteHead, ClearDeadline, BumpHistory, ResetAttempt,
		},
		Why: "The pending calls are cancelled, and the message is taken up at once.",
	},
	{
		Event: PromoteQueued, Guards: []Guard{TargetIsQueued, QueueGoesOn}, Edges: to(R1, A1),
		Effects: []Effect{
			ReorderQueue, AnswerOutstandingCalls, PromoteHead, ClearDeadline, BumpHistory, ResetAttempt,
		},
		Why: "The pending calls are given up, and the message is taken up at once, or one that cut in before it; the others wait.",
	},
}
