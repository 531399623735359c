// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

import "slices"

// manageRules are what people do to a chat as a whole, and the repair of a chat that is in no valid state.
var manageRules = []Rule{
	{
		Event: RequestCompaction, Edges: to(R0, W), Guards: []Guard{SomethingToCompact},
		Effects: []Effect{SetCompaction, BumpHistory, ResetAttempt},
		Why:     "No message is written, but the compaction needs a fence and a budget of attempts of its own.",
	},
	{
		Event: RequestCompaction, Edges: slices.Concat(to(R0, E0), to(R1, E1)), Guards: []Guard{SomethingToCompact},
		Effects: []Effect{ClearError, SetCompaction, BumpHistory, ResetAttempt},
		Why:     "A shorter context may be just what the failed turn needed; queued messages follow the compaction.",
	},
	{
		Event: ClearContext, Edges: stay(W), Guards: []Guard{SomethingToClear},
		Effects: []Effect{AnswerOutstandingCalls, WriteClearBoundary, BumpHistory, ResetAttempt},
		Why:     "It needs neither a pod nor a model, so the chat stays idle.",
	},
	{
		Event: ClearContext, Edges: to(W, E0), Guards: []Guard{SomethingToClear},
		Effects: []Effect{AnswerOutstandingCalls, WriteClearBoundary, ClearError, BumpHistory, ResetAttempt},
		Why:     "The error belonged to the old context. With messages queued it is refused: Waiting has no queue.",
	},
	{
		Event: Archive, Edges: slices.Concat(to(XW, W), to(XE0, E0), to(XE1, E1)), Guards: []Guard{FamilyIsIdle},
		Why: "A chat is archived as it stands, together with all its descendants or not at all.",
	},
	{
		Event: Unarchive, Edges: slices.Concat(to(W, XW), to(E0, XE0), to(E1, XE1)),
		Guards: []Guard{ParentIsNotArchived},
		Why:    "A chat is unarchived as it was archived, after its parent.",
	},
	{
		Event: ReconcileInvalid, Edges: to(E0, Invalid), Guards: []Guard{QueueIsEmpty},
		Effects: []Effect{
			AnswerOutstandingCalls, SetError, ClearDeadline, ClearCompaction, BumpHistory, ResetAttempt,
		},
		Why: "Error is the state in which a person sees what happened and from which every way is open.",
	},
	{
		Event: ReconcileInvalid, Edges: to(E1, Invalid), Guards: []Guard{QueueNotEmpty},
		Effects: []Effect{
			AnswerOutstandingCalls, SetError, ClearDeadline, ClearCompaction, BumpHistory, ResetAttempt,
		},
		Why: "Queued messages are not lost, but they do not run before a person has seen what happened.",
	},
}
