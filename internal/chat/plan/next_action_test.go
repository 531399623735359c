// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"iter"
	"slices"
	"testing"

	"parley.dev/parley/api/v1beta1"
)

// allProgress is every combination of facts, with limits and counts around each boundary.
func allProgress() iter.Seq[progress] {
	return func(yield func(progress) bool) {
		for bits := range 4 * 4 * 3 * 3 * 2 * 24 {
			counts, rest := bits/24, bits%24
			f := progress{
				maxSteps: counts/72 + 1, stepsInTurn: counts / 18 % 4, outstandingCalls: counts / 6 % 3,
				callsRequiringAction: counts / 2 % 3,
				headIsAssistant:      counts%2 == 1, turnOver: rest%2 == 1, compactionAsked: rest/2%2 == 1, fill: fills[rest/4%3],
				stoppedByTool: rest >= 12,
			}
			f.callsRequiringAction = min(f.callsRequiringAction, f.outstandingCalls)
			for _, bad := range [][2]int{{}, {1, 0}, {maxPauses, 0}, {0, 1}, {0, v1beta1.MaxOutputTries}}[:1+4*(counts%2)] {
				if f.paused, f.invalidOutputs = bad[0], bad[1]; !yield(f) { // Only replies are paused or invalid.
					return
				}
			}
		}
	}
}

var fills = []fill{fillFits, fillOver, fillStillOver}

func TestEveryCombinationOfFactsIsDecidedAsSpecified(t *testing.T) {
	seen := map[progress]bool{}
	for f := range allProgress() {
		seen[f] = true
		d := decideNextAction(actionRules, f)
		calls := f.outstandingCalls > 0
		settled := !calls && !f.compactionAsked
		runs := settled && !f.turnOver && !f.stoppedByTool
		answered := f.headIsAssistant && f.paused == 0 && f.invalidOutputs == 0
		invalid := runs && f.invalidOutputs == v1beta1.MaxOutputTries
		tried := runs && !answered && !invalid
		stopped := tried && f.stepsInTurn < f.maxSteps && f.paused == maxPauses
		goesOn := tried && f.stepsInTurn < f.maxSteps && !stopped
		own := f.outstandingCalls > f.callsRequiringAction
		for _, c := range []struct {
			action nextAction
			ending ending
			want   bool
		}{
			{executeTools, "", own},
			{requireAction, "", calls && !own},
			{finishTurn, turnOver, settled && f.turnOver},
			{finishTurn, stoppedAfterTool, settled && !f.turnOver && f.stoppedByTool},
			{finishTurn, complete, runs && answered},
			{finishTurn, maxStepsReached, tried && f.stepsInTurn >= f.maxSteps},
			{failTurn, pausedTooOften, stopped},
			{failTurn, outputInvalid, invalid},
			{compact, "", !calls && f.compactionAsked || goesOn && f.fill == fillOver},
			{failTurn, stillOverLimit, goesOn && f.fill == fillStillOver},
			{generateAssistant, "", goesOn && f.fill == fillFits},
		} {
			if got := d.action == c.action && d.ending == c.ending; got != c.want {
				t.Errorf("%+v: %s/%s is %v, want %v (decided: %+v)", f, c.action, c.ending, got, c.want, d)
			}
		}
	}
	if len(seen) != 4*4*(1+2+3)*(1+5)*24 {
		t.Errorf("%d combinations were tried", len(seen))
	}
}

func TestEveryActionRuleIsReachableAndNecessary(t *testing.T) {
	for i, r := range actionRules {
		fires, changes := false, false
		without := slices.Delete(slices.Clone(actionRules), i, i+1)
		for f := range allProgress() {
			got := decideNextAction(actionRules, f)
			fires = fires || got.rule == r.rule
			if got.rule != r.rule && decideNextAction(without, f) != got {
				t.Errorf("without %q, %+v is decided differently though another rule decided", r.rule, f)
			}
			other := decideNextAction(without, f)
			changes = changes || got.rule == r.rule && (other.action != r.action || other.ending != r.ending)
		}
		if !fires {
			t.Errorf("%q never fires", r.rule)
		}
		if !changes {
			t.Errorf("%q changes nothing", r.rule)
		}
	}
}

func TestNextActionRunsToolCallsToCompletion(t *testing.T) {
	cases := []struct {
		name  string
		facts progress
		want  decision
	}{
		{"a question is put to the model", progress{maxSteps: 2},
			decision{"the model is next", generateAssistant, ""}},
		{"its calls are run", progress{maxSteps: 2, stepsInTurn: 1, outstandingCalls: 2, headIsAssistant: true},
			decision{"calls are outstanding", executeTools, ""}},
		{"the results go back", progress{maxSteps: 2, stepsInTurn: 1},
			decision{"the model is next", generateAssistant, ""}},
		{"the calls of the last step are run too",
			progress{maxSteps: 2, stepsInTurn: 2, outstandingCalls: 1, headIsAssistant: true},
			decision{"calls are outstanding", executeTools, ""}},
		{"then the limit ends the turn", progress{maxSteps: 2, stepsInTurn: 2},
			decision{"the limit of steps is reached", finishTurn, maxStepsReached}},
		{"a reply in the last step is complete", progress{maxSteps: 2, stepsInTurn: 2, headIsAssistant: true},
			decision{"the reply is complete", finishTurn, complete}},
		{"the result of a tool that ends the turn does so", progress{maxSteps: 2, stepsInTurn: 1, stoppedByTool: true},
			decision{"a tool has ended the turn", finishTurn, stoppedAfterTool}},
		{"but not before the other calls are run", progress{maxSteps: 2, stepsInTurn: 1, outstandingCalls: 1,
			stoppedByTool: true},
			decision{"calls are outstanding", executeTools, ""}},
		{"nor before people have answered theirs",
			progress{maxSteps: 2, stepsInTurn: 1, outstandingCalls: 1, callsRequiringAction: 1, stoppedByTool: true},
			decision{"calls wait for people", requireAction, ""}},
		{"nor before a compaction that somebody asks for", progress{maxSteps: 2, stepsInTurn: 1, stoppedByTool: true,
			compactionAsked: true},
			decision{"a compaction is asked for", compact, ""}},
		{"a full context does not matter to it",
			progress{maxSteps: 2, stepsInTurn: 1, stoppedByTool: true, fill: fillOver},
			decision{"a tool has ended the turn", finishTurn, stoppedAfterTool}},
		{"nor is the limit of steps", progress{maxSteps: 1, stepsInTurn: 1, stoppedByTool: true},
			decision{"a tool has ended the turn", finishTurn, stoppedAfterTool}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := decideNextAction(actionRules, c.facts); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
