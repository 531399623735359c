// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1beta1"
)

// nextAction is what a turn does next. The first three are the words of Chat.status.generation.action.
type nextAction string

const (
	generateAssistant = nextAction(v1beta1.ActionGenerateAssistant)
	executeTools      = nextAction(v1beta1.ActionExecuteTools)
	compact           = nextAction(v1beta1.ActionCompact)
	// requireAction waits for a client's results or for approval.
	requireAction nextAction = "RequireAction"
	// finishTurn ends the turn normally.
	finishTurn nextAction = "FinishTurn"
	// failTurn ends the turn with an error.
	failTurn nextAction = "Fail"
)

// ending is why a turn is finished or fails; it is empty for the other actions.
type ending string

const (
	// complete means that the newest message is a reply that calls no tool, even if the model had nothing to say.
	complete ending = "Complete"
	// stoppedAfterTool means that a tool has succeeded after which the turn ends. It ends normally.
	stoppedAfterTool ending = "StoppedAfterTool"
	// maxStepsReached means that the turn has as many replies as it may have. It ends normally.
	maxStepsReached ending = "MaxStepsReached"
	// turnOver means that the turn had ended before; it was only taken up for a compaction.
	turnOver ending = "TurnOver"
	// pausedTooOften means that the provider has paused maxPauses replies in a row.
	pausedTooOften ending = "PausedTooOften"
	// outputInvalid means that the model has answered MaxOutputTries times in a row with what does not match the schema.
	outputInvalid ending = "OutputInvalid"
	// stillOverLimit means that the context is too full right after it was compacted.
	stillOverLimit ending = "StillOverLimit"
)

// contextFill is how the context stands to the threshold of compaction. The zero value lets the turn continue.
type fill string

const (
	// fillFits means that it is below the threshold, or that there is none.
	fillFits fill = ""
	// fillOver means that it has reached the threshold.
	fillOver fill = "Over"
	// fillStillOver means that it has reached the threshold although it was just compacted.
	fillStillOver fill = "StillOver"
)

// maxPauses is how many replies in a row a provider may pause. Anthropic names no limit.
const maxPauses = 10

// progress is what the next action of a turn depends on.
type progress struct {
	// maxSteps is the number of Assistant messages that a turn may have, at least 1.
	maxSteps int
	// stepsInTurn is the number of Assistant messages committed since the turn's User message.
	stepsInTurn int
	// outstandingCalls is the number of tool calls of the last Assistant message that Parley must run and that have no
	// result. Calls that the provider runs itself do not count.
	outstandingCalls int
	// callsRequiringAction is how many of them require a client's result or approval.
	callsRequiringAction int
	// headIsAssistant is true when the newest committed message is an Assistant's; otherwise it is a User's, or holds the
	// results of calls.
	headIsAssistant bool
	// paused is how many replies in a row the provider has paused, up to the newest.
	paused int
	// invalidOutputs is how many replies in a row do not match the schema that was asked for, up to the newest.
	invalidOutputs int
	// stoppedByTool is true when a call of the turn has succeeded whose tool ends it.
	stoppedByTool bool
	// turnOver is true when the turn has ended and the chat was only taken up for a compaction.
	turnOver bool
	// compactionAsked is true when somebody, or the refusal of a too long context, asks for a compaction.
	compactionAsked bool
	// fill of the context.
	fill fill
}

// decision is what comes next.
type decision struct {
	// rule is the name of the rule that decided.
	rule string
	// action to take.
	action nextAction
	// ending is why the turn is finished or fails.
	ending ending
}

// actionRule is one line of the decision: its name, what it decides, and why it stands where it does.
type actionRule struct {
	decision
	why  string
	when func(progress) bool
}

// actionRules decide what comes next. The first that matches wins, so that their order is part of their meaning. The
// last matches everything.
var actionRules = []actionRule{
	{decision{"calls are outstanding", executeTools, ""}, "No provider takes a history in which a call has no result, " +
		"so the results come first, even in the last step of a turn.",
		func(f progress) bool { return f.outstandingCalls > f.callsRequiringAction }},
	{decision{"calls wait for people", requireAction, ""},
		"What Parley can do itself comes first, so that people wait for as little as " +
			"possible.",
		func(f progress) bool { return f.callsRequiringAction > 0 }},
	{decision{"a compaction is asked for", compact, ""},
		"It stands before the end of the turn, because that is when people ask for it.",
		func(f progress) bool { return f.compactionAsked }},
	{decision{"the turn is over", finishTurn, turnOver},
		"A turn that was interrupted does not begin again because of a compaction.",
		func(f progress) bool { return f.turnOver }},
	{decision{"a tool has ended the turn", finishTurn, stoppedAfterTool},
		"It stands before all that calls the model, and behind the calls: every call of the " +
			"reply has its result, so that the history stays one that providers take.",
		func(f progress) bool { return f.stoppedByTool }},
	{decision{"the reply is complete", finishTurn, complete},
		"It stands before the limit, so that a turn that is done with its " +
			"last step counts as answered.",
		func(f progress) bool { return f.headIsAssistant && f.paused == 0 && f.invalidOutputs == 0 }},
	{decision{"the output does not match again and again", failTurn, outputInvalid},
		"It stands before the limit of steps, which would count as an answer.",
		func(f progress) bool { return f.invalidOutputs >= v1beta1.MaxOutputTries }},
	{decision{"the limit of steps is reached", finishTurn, maxStepsReached},
		"What was said so far stays, and a new message continues.",
		func(f progress) bool { return f.stepsInTurn >= f.maxSteps }},
	{decision{"the reply is paused again and again", failTurn, pausedTooOften},
		"Each pause costs a call, and nothing says that the next one is the last.",
		func(f progress) bool { return f.paused >= maxPauses }},
	{decision{"the context is still too full", failTurn, stillOverLimit},
		"A summary of the summary would be no shorter: it would only cost.",
		func(f progress) bool { return f.fill == fillStillOver }},
	{decision{"the context is too full", compact, ""},
		"It stands last, so that a turn that ends here pays for no summary.",
		func(f progress) bool { return f.fill == fillOver }},
	{decision{"the model is next", generateAssistant, ""},
		"The newest message is a User's, holds the results of calls, or is a reply that the provider has paused or " +
			"that does not match the schema.",
		func(progress) bool { return true }},
}

// decideNextAction returns the decision of the first rule that matches.
func decideNextAction(rules []actionRule, f progress) decision {
	for _, r := range rules {
		if r.when(f) {
			return r.decision
		}
	}
	return decision{}
}
