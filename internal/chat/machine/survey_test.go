// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"iter"
	"slices"
	"testing"
)

// allFacts is every combination of facts, with up to three queued messages and room for up to two.
func allFacts() iter.Seq[Facts] {
	return func(yield func(Facts) bool) {
		for bits := range 4 * 3 * 2 * 1024 {
			n := bits
			pick := func(size int) int { v := n % size; n /= size; return v }
			flag := func() bool { return pick(2) == 1 }
			f := Facts{QueueLen: pick(4), QueueCap: pick(3), CutInRoom: pick(2)}
			// RecordAttempt reads ten of them, each other event one of the first three.
			one, two, three := flag(), flag(), flag()
			f.Suspended, f.Compactable, f.FamilyBusy, f.CallsUnread = one, one, one, one
			f.SubChatsAtWork, f.Clearable, f.ParentArchived = two, two, two
			f.NoCapacity, f.Unanswered = three, three
			f.PodRejected, f.RetryNotDue, f.WorkspaceStarting, f.ReferenceMissing = flag(), flag(), flag(), flag()
			f.ServersStarting, f.OverBudget, f.ModelLimited = flag(), flag(), flag()
			if !yield(f) {
				return
			}
		}
	}
}

// question is one that can be asked of the machine.
type question struct {
	cell
	facts Facts
}

// questions are every event in every state under all facts that the state may have.
func questions() iter.Seq[question] {
	return func(yield func(question) bool) {
		for f := range allFacts() {
			for _, s := range States() {
				for _, e := range Events() {
					namesQueued := e == DeleteQueued || e == PromoteQueued
					if namesQueued && f.QueueLen == 0 || f.QueueLen > 0 && !s.Queues() {
						continue
					}
					if !yield(question{cell{s, e}, f}) {
						return
					}
				}
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

// surveyed has asked every question, for all tests of this package.
var surveyed = func() *survey {
	sv := &survey{fired: map[firing]int{}, targets: map[cell]map[State]bool{}, reasons: map[Reason]bool{}}
	for q := range questions() {
		sv.ask(q)
	}
	return sv
}()

func (sv *survey) ask(q question) {
	t, refusal := Lookup(q.state, q.event, q.facts)
	if refusal != "" {
		if refusal.Meaning() == "" {
			sv.problems = append(sv.problems, "the refusal of "+string(q.event)+" in "+string(q.state)+" is no reason: "+
				string(refusal))
		}
		sv.reasons[refusal] = true
		return
	}
	left := queueAfter(t, q.facts.QueueLen)
	switch {
	case left < 0 || left > 0 && !t.To.Queues():
		sv.problems = append(sv.problems, string(q.event)+" in "+string(q.state)+" leaves a queue that "+string(t.To)+
			" cannot have")
	case left > max(q.facts.QueueLen, q.facts.QueueCap+q.facts.CutInRoom):
		sv.problems = append(sv.problems, string(q.event)+" in "+string(q.state)+" fills the queue beyond its cap")
	}
	if sv.targets[q.cell] == nil {
		sv.targets[q.cell] = map[State]bool{}
	}
	sv.targets[q.cell][t.To] = true
	sv.fired[sv.ruleOf(q.cell, q.facts)]++
}

// queueAfter is the length of the queue once the effects are carried out.
func queueAfter(t Transition, n int) int {
	for _, e := range t.Effects {
		switch e {
		case EnqueueMessage, EnqueueCutIn:
			n++
		case PromoteHead, RemoveQueued:
			n--
		case ClearQueue:
			n = 0
		}
	}
	return n
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
		sv.problems = append(sv.problems, "not exactly one rule fires for "+string(c.event)+" in "+string(c.state))
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

func TestExactlyOneRuleFiresPerPossibleEvent(t *testing.T) {
	for _, p := range slices.Compact(slices.Sorted(slices.Values(surveyed.problems))) {
		t.Error(p)
	}
}

func TestEveryEdgeOfEveryRuleCanFire(t *testing.T) {
	sv := surveyed
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
	for c := range surveyed.targets {
		if !declared[c] {
			t.Errorf("%s is possible in %s, but no rule says so", c.event, c.state)
		}
	}
	if len(declared) != len(surveyed.targets) {
		t.Errorf("%d pairs are declared, %d are possible", len(declared), len(surveyed.targets))
	}
}

func TestEveryReasonOfRefusalHappens(t *testing.T) {
	for _, r := range Reasons() {
		if !surveyed.reasons[r] {
			t.Errorf("nothing is ever refused with %s", r)
		}
	}
}

func TestEveryValidStateIsReachableFromNewChat(t *testing.T) {
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

func TestARefusalSaysWhy(t *testing.T) {
	cases := []struct {
		name  string
		state State
		event Event
		facts Facts
		want  Reason
	}{
		{"a message to a full queue", Running, SendMessageQueue, Facts{QueueLen: 20, QueueCap: 20}, QueueFull},
		{"a message that cuts into a full queue", RequiresAction, SendMessageInterrupt, Facts{QueueLen: 20, QueueCap: 20},
			QueueFull},
		{"a message to a chat without a queue", Running, SendMessageQueue, Facts{}, QueueFull},
		{"a message to a failed chat whose cap was lowered", Error, SendMessageQueue, Facts{QueueLen: 3, QueueCap: 2},
			QueueFull},
		{"a second start", Waiting, Create, Facts{}, AlreadyStarted},
		{"a message before the start", None, SendMessageQueue, Facts{QueueCap: 20}, NotStarted},
		{"a message to an archived chat", ArchivedWaiting, SendMessageQueue, Facts{QueueCap: 20}, IsArchived},
		{"archiving what is archived", ArchivedWaiting, Archive, Facts{}, AlreadyArchived},
		{"taking back what is not archived", Waiting, Unarchive, Facts{}, NotArchived},
		{"taking a child back before its parent", ArchivedError, Unarchive, Facts{ParentArchived: true}, ParentArchived},
		{"archiving a family at work", Waiting, Archive, Facts{FamilyBusy: true}, FamilyBusy},
		{"archiving a chat at work", Running, Archive, Facts{}, InvalidState},
		{"interrupting an idle chat", Waiting, Interrupt, Facts{}, InvalidState},
		{"interrupting twice", Interrupting, Interrupt, Facts{}, InvalidState},
		{"asking people for calls that nobody has read", Running, EnterRequiresAction, Facts{CallsUnread: true}, CallsUnread},
		{"compacting nothing", Waiting, RequestCompaction, Facts{}, NothingToCompact},
		{"compacting what has no reply in it", Running, ContextTooLong, Facts{}, NothingToCompact},
		{"clearing nothing", Waiting, ClearContext, Facts{}, NothingToClear},
		{"clearing with messages queued", Error, ClearContext, Facts{QueueLen: 1, Clearable: true}, InvalidState},
		{"committing to a chat that is done", Waiting, CommitStep, Facts{}, InvalidState},
		{"anything in an invalid combination", Invalid, FinishTurn, Facts{QueueLen: 1}, StateInvalid},
		{"repairing what is whole", Waiting, ReconcileInvalid, Facts{}, StateValid},
		{"an attempt of a suspended chat", Running, RecordAttempt, Facts{Suspended: true}, Suspended},
		{"an attempt of a chat whose class is gone, whether there is capacity or not", Running, RecordAttempt,
			Facts{ReferenceMissing: true, NoCapacity: true}, ReferenceMissing},
		{"an attempt over budget, whether sub-chats are done or not", Running, RecordAttempt,
			Facts{OverBudget: true, SubChatsAtWork: true}, OverBudget},
		{"an attempt at a limited model, whether there is capacity or not", Running, RecordAttempt,
			Facts{ModelLimited: true, NoCapacity: true}, ModelLimited},
		{"an attempt at calls that wait for sub-chats, whether there is capacity or not", Running, RecordAttempt,
			Facts{SubChatsAtWork: true, NoCapacity: true}, SubChatsAtWork},
		{"an attempt at calls whose workspace starts, whether there is capacity or not", Running, RecordAttempt,
			Facts{WorkspaceStarting: true, NoCapacity: true}, WorkspaceStarting},
		{"an attempt whose MCP servers start, whether there is capacity or not", Running, RecordAttempt,
			Facts{ServersStarting: true, NoCapacity: true}, ServersStarting},
		{"an attempt without capacity", Running, RecordAttempt, Facts{NoCapacity: true}, NoCapacity},
		{"an attempt without a pod to make it", Running, RecordAttempt, Facts{PodRejected: true}, PodRejected},
		{"an attempt before its time", Running, RecordAttempt, Facts{RetryNotDue: true}, RetryNotDue},
		{"deleting a message of an archived chat", ArchivedWaiting, DeleteMessage, Facts{}, IsArchived},
		{"a word that is no event", Waiting, "Dance", Facts{}, InvalidState},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, got := Lookup(c.state, c.event, c.facts); got != c.want {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}
