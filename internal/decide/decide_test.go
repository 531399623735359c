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
		for bits := range 4 * 4 * 3 * 3 * 2 {
			f := Facts{bits/72 - 1, bits / 18 % 4, bits / 6 % 3, bits / 2 % 3, bits%2 == 1}
			f.AwaitingCalls = min(f.AwaitingCalls, f.OutstandingCalls)
			if !yield(f) {
				return
			}
		}
	}
}

func TestEveryCombinationOfFactsIsDecidedAsSpecified(t *testing.T) {
	seen := map[Facts]bool{}
	for f := range allFacts() {
		seen[f] = true
		d := Next(f)
		able, calls, done := f.MaxSteps >= 1, f.OutstandingCalls > 0, f.HeadIsAssistant
		own := f.OutstandingCalls > f.AwaitingCalls
		for _, c := range []struct {
			action Action
			reason Reason
			want   bool
		}{
			{Fail, MaxStepsInvalid, !able},
			{ExecuteTools, "", able && own},
			{RequireAction, "", able && calls && !own},
			{FinishTurn, Complete, able && !calls && done},
			{FinishTurn, MaxStepsReached, able && !calls && !done && f.StepsInTurn >= f.MaxSteps},
			{GenerateAssistant, "", able && !calls && !done && f.StepsInTurn < f.MaxSteps},
		} {
			if got := d.Action == c.action && d.Reason == c.reason; got != c.want {
				t.Errorf("%+v: %s/%s is %v, want %v (decided: %+v)", f, c.action, c.reason, got, c.want, d)
			}
		}
	}
	if len(seen) != 4*4*(1+2+3)*2 {
		t.Errorf("%d combinations were tried", len(seen))
	}
}

func TestEveryRuleCanFireAndNoneCanBeLeftOut(t *testing.T) {
	for i, r := range rules {
		fires := false
		without := slices.Delete(Rules(), i, i+1)
		for f := range allFacts() {
			got := Next(f)
			fires = fires || got.Rule == r.Name
			if got.Rule != r.Name && first(without, f) != got {
				t.Errorf("without %q, %+v is decided differently though another rule decided", r.Name, f)
			}
			if other := first(without, f); got.Rule == r.Name && other.Action == r.Action && other.Reason == r.Reason {
				t.Errorf("%q changes nothing for %+v", r.Name, f)
			}
		}
		if !fires {
			t.Errorf("%q never fires", r.Name)
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
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Next(c.facts); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
