// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

import (
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
)

// allCombinations is every combination of the fields of a State, and an unknown phase.
func allCombinations() []State {
	var out []State
	for _, p := range []Phase{
		PhaseNone, PhaseWaiting, PhaseRunning, PhaseInterrupting, PhaseRequiresAction, PhaseError, Invalid.Phase,
	} {
		for _, queue := range []bool{false, true} {
			for _, archived := range []bool{false, true} {
				out = append(out, State{p, queue, archived})
			}
		}
	}
	return out
}

var (
	allTargets = []Target{TargetMissing, TargetQueued, TargetUser, TargetOther}
	allAnswers = []Answers{AnswersMissing, AnswersDuplicate, AnswersUnexpected, AnswersInvalid, AnswersComplete}
)

// allFacts is every combination of facts, with up to three queued messages and room for up to two.
func allFacts() iter.Seq[Facts] {
	return func(yield func(Facts) bool) {
		for bits := range 4 * 3 * 4 * 5 * 8 {
			n := bits
			pick := func(size int) int { v := n % size; n /= size; return v }
			f := Facts{
				QueueLen: pick(4),
				QueueCap: pick(3),
				Target:   allTargets[pick(4)],
				Answers:  allAnswers[pick(5)],
			}
			// No event reads two facts of one line.
			one, two, three := pick(2) == 1, pick(2) == 1, pick(2) == 1
			f.FirstMessage, f.PendingCalls, f.Compactable, f.FamilyBusy, f.Suspended = one, one, one, one, one
			f.Clearable, f.ParentArchived, f.NoCapacity = two, two, two
			f.Unanswered, f.RetryWaits = three, three
			f.SubChatsAtWork = f.Answers == AnswersComplete // Attempts depend on no answers.
			f.PodRefused = f.Target == TargetOther          // And on no target.
			if !yield(f) {
				return
			}
		}
	}
}

// firing is one edge of one rule.
type firing struct {
	rule int
	edge Edge
}

type survey struct {
	fired    map[firing]int
	targets  map[cell]map[State]bool
	reasons  map[Reason]bool
	problems []string
}

// surveyed asks every event of every combination under every facts once, for all tests of this package.
var surveyed = sync.OnceValue(func() *survey {
	sv := &survey{fired: map[firing]int{}, targets: map[cell]map[State]bool{}, reasons: map[Reason]bool{}}
	for f := range allFacts() {
		for _, s := range allCombinations() {
			for _, e := range Events() {
				sv.ask(s, e, f)
			}
		}
	}
	return sv
})

func (sv *survey) ask(s State, e Event, f Facts) {
	t, err := Next(s, e, f)
	if err != nil {
		var r *Refusal
		if !errors.As(err, &r) || r.State != s || r.Event != e || r.Reason.Meaning() == "" {
			sv.problems = append(sv.problems, "refusal of "+string(e)+" in "+s.String()+" is not typed: "+err.Error())
			return
		}
		sv.reasons[r.Reason] = true
		return
	}
	if after := f.After(t); t.To.QueueNonEmpty != (after.QueueLen > 0) || after.QueueLen < 0 {
		sv.problems = append(sv.problems, string(e)+" in "+s.String()+" does not leave the queue that its state has")
	} else if after.QueueLen > max(f.QueueLen, f.QueueCap) {
		sv.problems = append(sv.problems, string(e)+" in "+s.String()+" fills the queue beyond its cap")
	}
	c := cell{s.canonical(), e}
	if sv.targets[c] == nil {
		sv.targets[c] = map[State]bool{}
	}
	sv.targets[c][t.To] = true
	firing := sv.ruleOf(c, f)
	sv.fired[firing]++
}

// ruleOf finds the rules that fire without the help of Next, and complains when it is not exactly one.
func (sv *survey) ruleOf(c cell, f Facts) firing {
	var found []firing
	for _, cand := range index[c] {
		holds := true
		for _, g := range cand.rule.Guards {
			holds = holds && specOfGuard[g].holds(f)
		}
		if holds {
			found = append(found, firing{rulePosition(cand.rule), Edge{c.state, cand.to}})
		}
	}
	if len(found) != 1 {
		sv.problems = append(sv.problems, "not exactly one rule fires for "+string(c.event)+" in "+c.state.String())
		return firing{rule: -1}
	}
	return found[0]
}

func rulePosition(r *Rule) int {
	for i := range table {
		if &table[i] == r {
			return i
		}
	}
	return -1
}

func TestExactlyOneRuleFiresWheneverAnEventIsPossible(t *testing.T) {
	for _, p := range slices.Compact(slices.Sorted(slices.Values(surveyed().problems))) {
		t.Error(p)
	}
}

func TestEveryEdgeOfEveryRuleCanFire(t *testing.T) {
	sv := surveyed()
	for i, r := range table {
		for _, e := range r.Edges {
			if sv.fired[firing{i, e}] == 0 {
				t.Errorf("rule %d (%s): the edge from %s to %s never fires", i, r.Event, e.From, e.To)
			}
		}
	}
}

func TestAnUndeclaredPairIsRefusedWhateverTheFacts(t *testing.T) {
	declared := map[cell]bool{}
	for _, r := range table {
		for _, e := range r.Edges {
			declared[cell{e.From, r.Event}] = true
		}
	}
	for c := range surveyed().targets {
		if !declared[c] {
			t.Errorf("%s is possible in %s, but no rule says so", c.event, c.state)
		}
	}
	if len(declared) != len(surveyed().targets) {
		t.Errorf("%d pairs are declared, %d are possible", len(declared), len(surveyed().targets))
	}
}

func TestEveryReasonOfRefusalHappens(t *testing.T) {
	for _, r := range Reasons() {
		if !surveyed().reasons[r] {
			t.Errorf("nothing is ever refused with %s", r)
		}
	}
}

func TestEveryStateIsReachableFromAChatWithoutMessages(t *testing.T) {
	reached := map[State]bool{None: true}
	for grew := true; grew; {
		grew = false
		for _, r := range table {
			for _, e := range r.Edges {
				if reached[e.From] && !reached[e.To] {
					reached[e.To], grew = true, true
				}
			}
		}
	}
	for _, s := range States() {
		if reached[s] == (s == Invalid) {
			t.Errorf("state %s: reachable is %v", s, reached[s])
		}
	}
}

func TestARefusalSaysWhatWasRefusedAndWhy(t *testing.T) {
	cases := []struct {
		name   string
		state  State
		event  Event
		facts  Facts
		reason Reason
	}{
		{"a message to a full queue", R1, SendMessageQueue, Facts{QueueLen: 20, QueueCap: 20}, QueueFull},
		{"a message that cuts into a full queue", A1, SendMessageInterrupt, Facts{QueueLen: 20, QueueCap: 20}, QueueFull},
		{"a message to a chat without a queue", R0, SendMessageQueue, Facts{}, QueueFull},
		{"a message to a failed chat whose cap was lowered", E1, SendMessageQueue,
			Facts{QueueLen: 3, QueueCap: 2}, QueueFull},
		{"a start without a message", None, Create, Facts{}, FirstMessageMissing},
		{"a second start", W, Create, Facts{FirstMessage: true}, AlreadyStarted},
		{"a message before the start", None, SendMessageQueue, Facts{QueueCap: 20}, NotStarted},
		{"a message to an archived chat", XW, SendMessageQueue, Facts{QueueCap: 20}, IsArchived},
		{"archiving what is archived", XW, Archive, Facts{}, AlreadyArchived},
		{"taking back what is not archived", W, Unarchive, Facts{}, NotArchived},
		{"taking a child back before its parent", XE0, Unarchive, Facts{ParentArchived: true}, ParentArchived},
		{"archiving a family at work", W, Archive, Facts{FamilyBusy: true}, FamilyBusy},
		{"archiving a chat at work", R0, Archive, Facts{}, NotInThisState},
		{"editing what is not there", W, EditMessage, Facts{}, TargetNotFound},
		{"editing a reply", W, EditMessage, Facts{Target: TargetOther}, TargetNotUser},
		{"editing a queued message as if it were committed", R1, EditMessage,
			Facts{QueueLen: 1, Target: TargetQueued}, TargetNotCommitted},
		{"deleting from the queue what is not in it", R1, DeleteQueued,
			Facts{QueueLen: 1, Target: TargetUser}, TargetNotQueued},
		{"interrupting an idle chat", W, Interrupt, Facts{}, NotInThisState},
		{"interrupting twice", I0, Interrupt, Facts{}, NotInThisState},
		{"waiting for nothing", R0, EnterRequiresAction, Facts{}, NothingPending},
		{"half of the answers", A0, CompleteRequiresAction, Facts{Answers: AnswersMissing}, AnswerMissing},
		{"an answer twice", A0, CompleteRequiresAction, Facts{Answers: AnswersDuplicate}, AnswerDuplicate},
		{"an answer to nothing", A0, CompleteRequiresAction, Facts{Answers: AnswersUnexpected}, AnswerUnexpected},
		{"an answer that is not JSON", A0, CompleteRequiresAction, Facts{Answers: AnswersInvalid}, AnswerInvalid},
		{"compacting nothing", W, RequestCompaction, Facts{}, NothingToCompact},
		{"clearing nothing", W, ClearContext, Facts{}, NothingToClear},
		{"clearing with messages queued", E1, ClearContext, Facts{QueueLen: 1, Clearable: true}, NotInThisState},
		{"committing to a chat that is done", W, CommitStep, Facts{}, NotInThisState},
		{"anything in an invalid combination", State{Phase: PhaseWaiting, QueueNonEmpty: true}, FinishTurn,
			Facts{QueueLen: 1}, StateInvalid},
		{"repairing what is whole", W, ReconcileInvalid, Facts{}, StateValid},
		{"facts of another state", R1, FinishTurn, Facts{QueueLen: 0}, FactsContradictState},
		{"an attempt of a suspended chat", R0, RecordAttempt, Facts{Suspended: true}, Suspended},
		{"an attempt at calls that wait for sub-chats, whether there is capacity or not", R0, RecordAttempt,
			Facts{SubChatsAtWork: true, NoCapacity: true}, SubChatsAtWork},
		{"an attempt without capacity", R0, RecordAttempt, Facts{NoCapacity: true}, NoCapacity},
		{"an attempt without a pod to make it", R0, RecordAttempt, Facts{PodRefused: true}, PodRefused},
		{"an attempt before its time", R0, RecordAttempt, Facts{RetryWaits: true}, RetryNotDue},
		{"deleting a message of an archived chat", XW, DeleteMessage, Facts{}, IsArchived},
		{"a word that is no event", W, "Dance", Facts{}, NotInThisState},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Next(c.state, c.event, c.facts)
			want := &Refusal{c.state, c.event, c.reason}
			var got *Refusal
			if !errors.As(err, &got) || *got != *want {
				t.Fatalf("got %v, want %v", err, want)
			}
		})
	}
}
