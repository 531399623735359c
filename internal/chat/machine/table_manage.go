// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

// manageRules are what people do to a chat as a whole, and the repair of a chat that is in no valid state.
var manageRules = []Rule{
	{
		Event: RequestCompaction, Edges: to(Running, Waiting), Guards: []Guard{SomethingToCompact},
		Effects: []Effect{SetCompaction, BumpHistory, ResetAttempt},
		Why:     "No message is written, but the compaction needs a fence and a budget of attempts of its own.",
	},
	{
		Event: RequestCompaction, Edges: to(Running, Error), Guards: []Guard{SomethingToCompact},
		Effects: []Effect{ClearError, SetCompaction, BumpHistory, ResetAttempt},
		Why:     "A shorter context may be just what the failed turn needed; queued messages follow the compaction.",
	},
	{
		Event: ClearContext, Edges: stay(Waiting), Guards: []Guard{SomethingToClear},
		Effects: []Effect{CancelCalls, BeginContext, BumpHistory, ResetAttempt},
		Why:     "It needs neither a pod nor a model, so the chat stays idle.",
	},
	{
		Event: ClearContext, Edges: to(Waiting, Error), Guards: []Guard{QueueIsEmpty, SomethingToClear},
		Effects: []Effect{CancelCalls, BeginContext, ClearError, BumpHistory, ResetAttempt},
		Why:     "The error belonged to the old context. With messages queued it is refused: Waiting has no queue.",
	},
	{
		Event: Archive, Edges: []Edge{{Waiting, ArchivedWaiting}, {Error, ArchivedError}}, Guards: []Guard{FamilyIsIdle},
		Why: "A chat is archived as it stands, together with all its descendants or not at all.",
	},
	{
		Event: Unarchive, Edges: []Edge{{ArchivedWaiting, Waiting}, {ArchivedError, Error}},
		Guards: []Guard{ParentIsNotArchived},
		Why:    "A chat is unarchived as it was archived, after its parent.",
	},
	{
		Event: ReconcileInvalid, Edges: to(Error, Invalid),
		Effects: []Effect{CancelCalls, SetError, ClearDeadline, ClearCompaction, BumpHistory, ResetAttempt},
		Why: "Error is the state in which a person sees what happened and from which every way is open. Queued messages " +
			"are not lost, " +
			"but they do not run before.",
	},
}
