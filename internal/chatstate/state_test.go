// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

import (
	"slices"
	"testing"
)

func TestNamesOfStatesAreReadBack(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range States() {
		got, err := ParseState(s.String())
		if err != nil || got != s {
			t.Errorf("parsing %q: got %v, %v", s, got, err)
		}
		if seen[s.String()] {
			t.Errorf("two states are named %q", s)
		}
		seen[s.String()] = true
	}
	if _, err := ParseState("W1"); err == nil {
		t.Error("a name that is no state was read")
	}
}

func TestACombinationThatIsNoStateIsInvalid(t *testing.T) {
	valid := 0
	for _, s := range allCombinations() {
		if s.Valid() {
			valid++
		} else if s.String() != "Invalid" || s.Meaning() != Invalid.Meaning() {
			t.Errorf("%+v is named %q", s, s)
		}
	}
	if valid != 13 {
		t.Errorf("%d combinations are states besides Invalid, want 12 with messages and None", valid)
	}
}

func TestStateOfCountsTheQueue(t *testing.T) {
	if got := StateOf(PhaseRunning, 0, false); got != R0 {
		t.Errorf("got %s, want R0", got)
	}
	if got := StateOf(PhaseError, 2, true); got != XE1 {
		t.Errorf("got %s, want XE1", got)
	}
	if got := StateOf(PhaseWaiting, 1, false); got.Valid() {
		t.Errorf("got %s, want Invalid", got)
	}
}

func TestEveryWordHasAMeaningAndIsUsed(t *testing.T) {
	var events []Event
	var guards []Guard
	var effects []Effect
	for _, r := range Transitions() {
		events, guards, effects = append(events, r.Event), append(guards, r.Guards...), append(effects, r.Effects...)
	}
	for _, e := range Events() {
		if e.Meaning() == "" || !slices.Contains(events, e) {
			t.Errorf("event %s has no meaning or no rule", e)
		}
	}
	for _, g := range Guards() {
		if g.Meaning() == "" || !slices.Contains(guards, g) {
			t.Errorf("guard %s has no meaning or no rule", g)
		}
	}
	for _, e := range Effects() {
		if e.Meaning() == "" || !slices.Contains(effects, e) {
			t.Errorf("effect %s has no meaning or no rule", e)
		}
	}
	for _, g := range guards {
		if specOfGuard[g].holds == nil {
			t.Errorf("a rule needs %q, which is no guard", g)
		}
	}
	for _, e := range effects {
		if e.Meaning() == "" {
			t.Errorf("a rule does %q, which is no effect", e)
		}
	}
	if Event("x").Meaning()+Effect("x").Meaning()+Reason("x").Meaning()+Guard("x").Meaning() != "" {
		t.Error("a word that is none has a meaning")
	}
}

func TestTheTableCannotBeChangedFromOutside(t *testing.T) {
	Transitions()[0].Effects[0] = "Spoiled"
	Transitions()[0].Edges[0].To = Invalid
	Transitions()[0].Guards[0] = "Spoiled"
	first, err := Next(None, Create, Facts{FirstMessage: true})
	if err != nil {
		t.Fatal(err)
	}
	first.Effects[0] = "Spoiled"
	again, err := Next(None, Create, Facts{FirstMessage: true})
	if err != nil || again.To != R0 || !again.Does(AppendMessage) || again.Does("Spoiled") {
		t.Errorf("got %+v, %v", again, err)
	}
}

func TestEventsOfOneWriteFollowOneAnother(t *testing.T) {
	s, f := R1, Facts{QueueLen: 1, QueueCap: 20}
	for _, e := range []Event{CommitStep, FinishTurn, RecordAttempt} {
		tr, err := Next(s, e, f)
		if err != nil {
			t.Fatal(err)
		}
		s, f = tr.To, f.After(tr)
	}
	if s != R0 || f.QueueLen != 0 {
		t.Errorf("got %s with %d queued, want R0 with none", s, f.QueueLen)
	}
}
