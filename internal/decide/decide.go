// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decide says which action of a turn comes next. It is pure: facts about the committed history go in, one
// decision comes out. The order of its rules is part of their meaning: the first that matches wins.
package decide

import "slices"

// Action is what to do. The first two are the words of Chat.status.generation.action.
type Action string

// The actions.
const (
	// GenerateAssistant calls the model.
	GenerateAssistant Action = "GenerateAssistant"
	// ExecuteTools runs the tool calls that have no result.
	ExecuteTools Action = "ExecuteTools"
	// RequireAction waits for a client's results or for approval.
	RequireAction Action = "RequireAction"
	// Compact replaces the context by a summary.
	Compact Action = "Compact"
	// FinishTurn ends the turn normally.
	FinishTurn Action = "FinishTurn"
	// Fail ends the turn with an error.
	Fail Action = "Fail"
)

// Reason is why a turn is finished or fails; it is empty for the other actions.
type Reason string

// The reasons.
const (
	// Complete means that the newest message is a reply that calls no tool, even if the model had nothing to say.
	Complete Reason = "Complete"
	// StoppedAfterTool means that a tool has succeeded after which the turn ends. It ends normally.
	StoppedAfterTool Reason = "StoppedAfterTool"
	// MaxStepsReached means that the turn has as many replies as it may have. It ends normally.
	MaxStepsReached Reason = "MaxStepsReached"
	// MaxStepsInvalid means that the limit allows no step at all.
	MaxStepsInvalid Reason = "MaxStepsInvalid"
	// TurnOver means that the turn had ended before; it was only taken up for a compaction.
	TurnOver Reason = "TurnOver"
	// StillOverLimit means that the context is too full right after it was compacted.
	StillOverLimit Reason = "StillOverLimit"
	// BudgetExceeded means that the chat may not spend any more.
	BudgetExceeded Reason = "BudgetExceeded"
)

// Fill is how the context stands to the threshold of compaction.
type Fill string

// The fills. The zero value lets the turn go on.
const (
	// FillFits means that it is below the threshold, or that there is none.
	FillFits Fill = ""
	// FillOver means that it has reached the threshold.
	FillOver Fill = "Over"
	// FillStillOver means that it has reached the threshold although it was just compacted.
	FillStillOver Fill = "StillOver"
)

// Facts are what a decision depends on.
type Facts struct {
	// MaxSteps is the number of Assistant messages that a turn may have.
	MaxSteps int
	// StepsInTurn is the number of Assistant messages committed since the turn's User message.
	StepsInTurn int
	// OutstandingCalls is the number of tool calls of the last Assistant message that Parley must run and that have no
	// result. Calls that the provider runs itself do not count.
	OutstandingCalls int
	// AwaitingCalls is how many of them wait for a client or for approval.
	AwaitingCalls int
	// HeadIsAssistant is true when the newest committed message is an Assistant's; otherwise it is a User's, or holds the
	// results of calls.
	HeadIsAssistant bool
	// StoppedByTool is true when a call of the turn has succeeded whose tool ends it.
	StoppedByTool bool
	// TurnOver is true when the turn has ended and the chat was only taken up for a compaction.
	TurnOver bool
	// CompactionAsked is true when somebody, or the refusal of a too long context, asks for a compaction.
	CompactionAsked bool
	// Fill of the context.
	Fill Fill
	// BudgetUsedUp is true when the chat has a budget and has spent it.
	BudgetUsedUp bool
}

// Decision is what comes next.
type Decision struct {
	// Rule is the name of the rule that decided.
	Rule string
	// Action to take.
	Action Action
	// Reason of FinishTurn and Fail.
	Reason Reason
}

// Rule is one line of the decision.
type Rule struct {
	// Name of the rule, for logs and documentation.
	Name string
	// Action and Reason of the decision.
	Action Action
	Reason Reason
	// Why the rule stands where it does.
	Why string

	when func(Facts) bool
}

var rules = []Rule{
	{"no step is allowed", Fail, MaxStepsInvalid, "A limit below one would make every turn end without an answer.",
		func(f Facts) bool { return f.MaxSteps <= 0 }},
	{"calls are outstanding", ExecuteTools, "", "No provider takes a history in which a call has no result, " +
		"so the results come first, even in the last step of a turn.",
		func(f Facts) bool { return f.OutstandingCalls > f.AwaitingCalls }},
	{"calls wait for people", RequireAction, "", "What Parley can do itself comes first, so that people wait for as little as " +
		"possible.",
		func(f Facts) bool { return f.AwaitingCalls > 0 }},
	{"the budget is used up before a compaction", Fail, BudgetExceeded, "A summary costs money too.",
		func(f Facts) bool { return f.CompactionAsked && f.BudgetUsedUp }},
	{"a compaction is asked for", Compact, "", "It stands before the end of the turn, because that is when people ask for it.",
		func(f Facts) bool { return f.CompactionAsked }},
	{"the turn is over", FinishTurn, TurnOver, "A turn that was interrupted does not begin again because of a compaction.",
		func(f Facts) bool { return f.TurnOver }},
	{"a tool has ended the turn", FinishTurn, StoppedAfterTool, "It stands before all that calls the model, and behind the calls: every call of the " +
		"reply has its result, so that the history stays one that providers take.",
		func(f Facts) bool { return f.StoppedByTool }},
	{"the reply is complete", FinishTurn, Complete, "It stands before the limit, so that a turn that is done with its " +
		"last step counts as answered.",
		func(f Facts) bool { return f.HeadIsAssistant }},
	{"the limit of steps is reached", FinishTurn, MaxStepsReached, "What was said so far stays, and a new message goes on.",
		func(f Facts) bool { return f.StepsInTurn >= f.MaxSteps }},
	{"the budget is used up", Fail, BudgetExceeded, "It stands before all that costs money: what tools and people still have to do is done, " +
		"and a turn that needs no further call ends normally.",
		func(f Facts) bool { return f.BudgetUsedUp }},
	{"the context is still too full", Fail, StillOverLimit, "A summary of the summary would be no shorter: it would only cost.",
		func(f Facts) bool { return f.Fill == FillStillOver }},
	{"the context is too full", Compact, "", "It stands last, so that nothing is summarised that nobody goes on with.",
		func(f Facts) bool { return f.Fill == FillOver }},
	{"the model is next", GenerateAssistant, "", "The newest message is a User's, or holds the results of calls.",
		func(Facts) bool { return true }},
}

// Rules is the decision as a list: the first rule that matches wins.
func Rules() []Rule { return slices.Clone(rules) }

// Next says what comes next. The last rule matches everything, so there is always an answer.
func Next(f Facts) Decision { return first(rules, f) }

func first(rules []Rule, f Facts) Decision {
	for _, r := range rules {
		if r.when(f) {
			return Decision{Rule: r.Name, Action: r.Action, Reason: r.Reason}
		}
	}
	return Decision{}
}
