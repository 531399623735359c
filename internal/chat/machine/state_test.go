// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"testing"

	"parley.dev/parley/api/v1beta1"
)

func TestPhaseQueueAndArchiveDetermineState(t *testing.T) {
	cases := []struct {
		phase    v1beta1.ChatPhase
		queued   int
		archived bool
		want     State
	}{
		{v1beta1.ChatWaiting, 0, false, Waiting},
		{v1beta1.ChatWaiting, 1, false, Invalid},
		{v1beta1.ChatWaiting, 0, true, ArchivedWaiting},
		{v1beta1.ChatWaiting, 1, true, Invalid},
		{v1beta1.ChatError, 0, false, Error},
		{v1beta1.ChatError, 2, false, Error},
		{v1beta1.ChatError, 0, true, ArchivedError},
		{v1beta1.ChatError, 2, true, ArchivedError},
		{v1beta1.ChatRunning, 0, false, Running},
		{v1beta1.ChatRunning, 20, false, Running},
		{v1beta1.ChatRunning, 0, true, Invalid},
		{v1beta1.ChatInterrupting, 1, false, Interrupting},
		{v1beta1.ChatInterrupting, 0, true, Invalid},
		{v1beta1.ChatRequiresAction, 1, false, RequiresAction},
		{v1beta1.ChatRequiresAction, 1, true, Invalid},
		{"", 0, false, Invalid},
		{"Dancing", 0, false, Invalid},
	}
	for _, c := range cases {
		if got := StateOf(c.phase, c.queued, c.archived); got != c.want {
			t.Errorf("phase %q with %d queued, archived %v: got %s, want %s", c.phase, c.queued, c.archived, got, c.want)
		}
	}
}

func TestStateRoundTripsThroughPhaseAndArchive(t *testing.T) {
	for _, s := range States() {
		if s == None || s == Invalid {
			continue
		}
		if got := StateOf(s.Phase(), 0, s.Archived()); got != s {
			t.Errorf("%s is written as %q, archived %v, and read as %s", s, s.Phase(), s.Archived(), got)
		}
	}
}

func TestEveryWordHasAMeaningAndIsUsed(t *testing.T) {
	var events []Event
	var guards []Guard
	var effects []Effect
	for _, r := range Rules() {
		events, guards, effects = append(events, r.Event), append(guards, r.Guards...), append(effects, r.Effects...)
	}
	for _, s := range States() {
		if s.Meaning() == "" {
			t.Errorf("state %s has no meaning", s)
		}
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
	if State("x").Meaning()+Event("x").Meaning()+Effect("x").Meaning()+Reason("x").Meaning()+Guard("x").Meaning() != "" {
		t.Error("a word that is none has a meaning")
	}
}

func TestTheTableCannotBeChangedFromOutside(t *testing.T) {
	compacts := func(r Rule) bool { return r.Event == RequestCompaction }
	spoiled := Rules()[slices.IndexFunc(Rules(), compacts)]
	spoiled.Effects[0], spoiled.Edges[0].To, spoiled.Guards[0] = "Spoiled", Invalid, "Spoiled"
	for range 2 {
		got, refusal := Lookup(Waiting, RequestCompaction, Facts{Compactable: true})
		if refusal != "" || got.To != Running || got.Effects[0] != SetCompaction {
			t.Fatalf("got %+v, %s", got, refusal)
		}
		got.Effects[0] = "Spoiled"
	}
}
