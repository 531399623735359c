// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "slices"

// Edge leads from one state to another, or to itself.
type Edge struct {
	From, To State
}

// Rule is one row of the table: an event, the edges that it takes, the guards that must all hold, what is done in which
// order, and why. A rule fires on at most one of its edges, the one that begins in the chat's state.
type Rule struct {
	Event   Event
	Edges   []Edge
	Guards  []Guard
	Effects []Effect
	Why     string
}

// Transition is what an event does to a chat.
type Transition struct {
	// Event that caused it.
	Event Event
	// From is the state before.
	From State
	// To is the state after; it may be the same.
	To State
	// Effects to carry out, in this order, in the write that sets To.
	Effects []Effect
	// Why says in one sentence why it is so.
	Why string
}

type cell struct {
	state State
	event Event
}

type candidate struct {
	rule *Rule
	to   State
}

// index finds the rules of a state and an event. Rules whose guards exclude each other share a cell.
var index = func() map[cell][]candidate {
	m := map[cell][]candidate{}
	for i := range table {
		r := &table[i]
		for _, e := range r.Edges {
			c := cell{e.From, r.Event}
			m[c] = append(m[c], candidate{r, e.To})
		}
	}
	return m
}()

// Rules is the whole table. The caller may change what it gets.
func Rules() []Rule {
	out := slices.Clone(table)
	for i := range out {
		out[i].Edges = slices.Clone(out[i].Edges)
		out[i].Guards = slices.Clone(out[i].Guards)
		out[i].Effects = slices.Clone(out[i].Effects)
	}
	return out
}

// Lookup is what e does to a chat in state s; or else the reason for which it is refused,
// and then nothing may be changed.
func Lookup(s State, e Event, f Facts) (Transition, Reason) {
	candidates := index[cell{s, e}]
	if len(candidates) == 0 {
		return Transition{}, absence(s, e)
	}
	reason := InvalidState
	for _, c := range candidates {
		failed, ok := firstFailing(c.rule.Guards, f)
		if ok {
			return Transition{Event: e, From: s, To: c.to, Effects: slices.Clone(c.rule.Effects), Why: c.rule.Why}, ""
		}
		if r := failed.Refuses(); r != "" {
			reason = r
		}
	}
	return Transition{}, reason
}

func firstFailing(guards []Guard, f Facts) (Guard, bool) {
	for _, g := range guards {
		if !specOfGuard[g].holds(f) {
			return g, false
		}
	}
	return "", true
}

// absence is the reason for which a cell of the table is empty.
func absence(s State, e Event) Reason {
	switch {
	case e == ReconcileInvalid:
		return StateValid
	case s == Invalid:
		return StateInvalid
	case s == None:
		return NotStarted
	case e == Create:
		return AlreadyStarted
	case e == Unarchive:
		return NotArchived
	case s.Archived() && e == Archive:
		return AlreadyArchived
	case s.Archived():
		return IsArchived
	default:
		return InvalidState
	}
}
