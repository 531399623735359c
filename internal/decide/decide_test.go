// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"iter"
	"slices"
	"testing"
)

// allFacts is every combination of facts, with limits and counts around each boundary.
func allFacts() iter.Seq[Facts] {
	return func(yield func(Facts) bool) {
		for bits := range 4 * 4 * 3 * 3 * 2 * 48 {
			counts, rest := bits/48, bits%48
			f := Facts{
				MaxSteps: counts/72 - 1, StepsInTurn: counts / 18 % 4, OutstandingCalls: counts / 6 % 3, AwaitingCalls: counts / 2 % 3,
				HeadIsAssistant: counts%2 == 1, TurnOver: rest%2 == 1, CompactionAsked: rest/2%2 == 1, Fill: fills[rest/4%3], BudgetUsedUp: rest/12%2 == 1,
				StoppedByTool: rest >= 24,
			}
			f.AwaitingCalls = min(f.AwaitingCalls, f.OutstandingCalls)
			if !yield(f) {
				return
			}
		}
	}
}

var fills = []Fill{FillFits, FillOver, FillStillOver}

func TestEveryCombinationOfFactsIsDecidedAsSpecified(t *testing.T) {
	seen := map[Facts]bool{}
	for f := range allFacts() {
		seen[f] = true
		d := Next(f)
		able, calls := f.MaxSteps >= 1, f.OutstandingCalls > 0
		settled := able && !calls && !f.CompactionAsked
		runs := settled && !f.TurnOver && !f.StoppedByTool
		goesOn := runs && !f.HeadIsAssistant && f.StepsInTurn < f.MaxSteps
		own := f.OutstandingCalls > f.AwaitingCalls
		for _, c := range []struct {
			action Action
			reason Reason
			want   bool
		}{
			{Fail, MaxStepsInvalid, !able},
			{ExecuteTools, "", able && own},
			{RequireAction, "", able && calls && !own},
			{FinishTurn, TurnOver, settled && f.TurnOver},
			{FinishTurn, StoppedAfterTool, settled && !f.TurnOver && f.StoppedByTool},
			{FinishTurn, Complete, runs && f.HeadIsAssistant},
			{FinishTurn, MaxStepsReached, runs && !f.HeadIsAssistant && f.StepsInTurn >= f.MaxSteps},
			{Fail, BudgetExceeded, able && !calls && f.CompactionAsked && f.BudgetUsedUp || goesOn && f.BudgetUsedUp},
			{Compact, "", (able && !calls && f.CompactionAsked || goesOn && f.Fill == FillOver) && !f.BudgetUsedUp},
			{Fail, StillOverLimit, goesOn && f.Fill == FillStillOver && !f.BudgetUsedUp},
			{GenerateAssistant, "", goesOn && f.Fill == FillFits && !f.BudgetUsedUp},
		} {
			if got := d.Action == c.action && d.Reason == c.reason; got != c.want {
				t.Errorf("%+v: %s/%s is %v, want %v (decided: %+v)", f, c.action, c.reason, got, c.want, d)
			}
		}
	}
	if len(seen) != 4*4*(1+2+3)*2*48 {
		t.Errorf("%d combinations were tried", len(seen))
	}
}

func TestEveryRuleCanFireAndNoneCanBeLeftOut(t *testing.T) {
	for i, r := range rules {
		fires, changes := false, false
		without := slices.Delete(Rules(), i, i+1)
		for f := range allFacts() {
			got := Next(f)
			fires = fires || got.Rule == r.Name
			if got.Rule != r.Name && first(without, f) != got {
				t.Errorf("without %q, %+v is decided differently though another rule decided", r.Name, f)
			}
			other := first(without, f)
			changes = changes || got.Rule == r.Name && (other.Action != r.Action || other.Reason != r.Reason)
		}
		if !fires {
			t.Errorf("%q never fires", r.Name)
		}
		if !changes {
			t.Errorf("%q changes nothing", r.Name)
		}
	}
}

func TestATurnOfToolCallsRunsToItsEnd(t *testing.T) {
	cases := []struct {
		name  string
		facts Facts
		want  Decision
	}{
		{"a question is put to the model", Facts{MaxSteps: 2},
			Decision{"the model is next", GenerateAssistant, ""}},
		{"its calls are run", Facts{MaxSteps: 2, StepsInTurn: 1, OutstandingCalls: 2, HeadIsAssistant: true},
			Decision{"calls are outstanding", ExecuteTools, ""}},
		{"the results go back", Facts{MaxSteps: 2, StepsInTurn: 1},
			Decision{"the model is next", GenerateAssistant, ""}},
		{"the calls of the last step are run too",
			Facts{MaxSteps: 2, StepsInTurn: 2, OutstandingCalls: 1, HeadIsAssistant: true},
			Decision{"calls are outstanding", ExecuteTools, ""}},
		{"then the limit ends the turn", Facts{MaxSteps: 2, StepsInTurn: 2},
			Decision{"the limit of steps is reached", FinishTurn, MaxStepsReached}},
		{"a reply in the last step is complete", Facts{MaxSteps: 2, StepsInTurn: 2, HeadIsAssistant: true},
			Decision{"the reply is complete", FinishTurn, Complete}},
		{"a reply that uses up the budget is complete", Facts{MaxSteps: 2, StepsInTurn: 1, HeadIsAssistant: true, BudgetUsedUp: true},
			Decision{"the reply is complete", FinishTurn, Complete}},
		{"its calls are run", Facts{MaxSteps: 2, StepsInTurn: 1, OutstandingCalls: 1, HeadIsAssistant: true, BudgetUsedUp: true},
			Decision{"calls are outstanding", ExecuteTools, ""}},
		{"but the model is not called again", Facts{MaxSteps: 2, StepsInTurn: 1, BudgetUsedUp: true},
			Decision{"the budget is used up", Fail, BudgetExceeded}},
		{"the result of a tool that ends the turn does so", Facts{MaxSteps: 2, StepsInTurn: 1, StoppedByTool: true},
			Decision{"a tool has ended the turn", FinishTurn, StoppedAfterTool}},
		{"but not before the other calls are run", Facts{MaxSteps: 2, StepsInTurn: 1, OutstandingCalls: 1, StoppedByTool: true},
			Decision{"calls are outstanding", ExecuteTools, ""}},
		{"nor before people have answered theirs",
			Facts{MaxSteps: 2, StepsInTurn: 1, OutstandingCalls: 1, AwaitingCalls: 1, StoppedByTool: true},
			Decision{"calls wait for people", RequireAction, ""}},
		{"nor before a compaction that somebody asks for", Facts{MaxSteps: 2, StepsInTurn: 1, StoppedByTool: true, CompactionAsked: true},
			Decision{"a compaction is asked for", Compact, ""}},
		{"a full context and a budget that is used up are of no matter to it",
			Facts{MaxSteps: 2, StepsInTurn: 1, StoppedByTool: true, Fill: FillOver, BudgetUsedUp: true},
			Decision{"a tool has ended the turn", FinishTurn, StoppedAfterTool}},
		{"nor is the limit of steps", Facts{MaxSteps: 1, StepsInTurn: 1, StoppedByTool: true},
			Decision{"a tool has ended the turn", FinishTurn, StoppedAfterTool}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.facts); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
