// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strings"
	"testing"
)

// edgeLaw is something that must be true of every edge of every rule.
type edgeLaw struct {
	name string
	ok   func(r Rule, e Edge) bool
}

func has(r Rule, wanted ...Effect) bool {
	for _, w := range wanted {
		if slices.Contains(r.Effects, w) {
			return true
		}
	}
	return false
}

// hasBefore says whether first is among the effects, and before every one of the others that is.
func hasBefore(r Rule, first Effect, others ...Effect) bool {
	i := slices.Index(r.Effects, first)
	for _, o := range others {
		if j := slices.Index(r.Effects, o); j >= 0 && (i < 0 || i > j) {
			return false
		}
	}
	return true
}

func ends(r Rule) bool      { return r.Event == FinishTurn || r.Event == FinishInterruption }
func archives(r Rule) bool  { return r.Event == Archive || r.Event == Unarchive }
func sends(r Rule) bool     { return r.Event == SendMessageQueue || r.Event == SendMessageInterrupt }
func failed(s State) bool   { return s == Error || s == ArchivedError }
func working(s State) bool  { return s == Running || s == Interrupting }
func awaiting(s State) bool { return s == RequiresAction }

var edgeLaws = []edgeLaw{
	{"a chat only comes to a declared state", func(_ Rule, e Edge) bool {
		return slices.Contains(States(), e.To) && e.To != None && e.To != Invalid
	}},
	{"archiving changes nothing else", func(r Rule, e Edge) bool {
		return !archives(r) || e.From.Phase() == e.To.Phase() && e.From.Archived() != e.To.Archived() && len(r.Effects) == 0
	}},
	{"only Archive and Unarchive touch the archive", func(r Rule, e Edge) bool {
		return archives(r) || e.From.Archived() == e.To.Archived()
	}},
	{"who leaves RequiresAction answers the pending calls, or takes them out of the history", func(r Rule, e Edge) bool {
		return !awaiting(e.From) || awaiting(e.To) || has(r, CancelCalls, AppendResults, TruncateFrom)
	}},
	{"only CompleteRequiresAction takes results from outside", func(r Rule, _ Edge) bool {
		return has(r, AppendResults) == (r.Event == CompleteRequiresAction)
	}},
	{"outstanding calls are answered before a User message is committed", func(r Rule, _ Edge) bool {
		return r.Event == Create || hasBefore(r, CancelCalls, AppendMessage, PromoteHead, BeginContext)
	}},
	{"calls that are taken out of the history are not answered", func(r Rule, _ Edge) bool {
		return !has(r, TruncateFrom) || hasBefore(r, TruncateFrom, CancelCalls)
	}},
	{"a kept partial reply has its calls answered", func(r Rule, _ Edge) bool {
		return !has(r, AppendPartial) || hasBefore(r, AppendPartial, CancelCalls)
	}},
	{"the deadline is set exactly on entering RequiresAction", func(r Rule, e Edge) bool {
		return has(r, SetDeadline) == (!awaiting(e.From) && awaiting(e.To))
	}},
	{"the deadline is cleared exactly on leaving RequiresAction, and by the repair", func(r Rule, e Edge) bool {
		return has(r, ClearDeadline) == ((awaiting(e.From) && !awaiting(e.To)) || r.Event == ReconcileInvalid)
	}},
	{"the error is set exactly on entering Error", func(r Rule, e Edge) bool {
		return has(r, SetError) == (!failed(e.From) && failed(e.To))
	}},
	{"the error is cleared exactly on leaving Error", func(r Rule, e Edge) bool {
		return has(r, ClearError) == (failed(e.From) && !failed(e.To))
	}},
	{"a queue is promoted in the write that ends the turn or the interruption", func(r Rule, _ Edge) bool {
		return !ends(r) || has(r, PromoteHead) == slices.Contains(r.Guards, QueueNotEmpty)
	}},
	{"a turn that ends says how, and only such a turn", func(r Rule, _ Edge) bool { return has(r, EndTurn) == ends(r) }},
	{"a message sent to a failed chat goes last", func(r Rule, e Edge) bool {
		return !sends(r) || e.From != Error || inOrder(r.Effects, []Effect{EnqueueMessage, PromoteHead})
	}},
	{"a compaction begins with a new version and no attempt", func(r Rule, _ Edge) bool {
		return !has(r, SetCompaction) || inOrder(r.Effects, []Effect{SetCompaction, BumpHistory, ResetAttempt})
	}},
	{"a new version of the history begins without an attempt", func(r Rule, _ Edge) bool {
		return !has(r, BumpHistory) || inOrder(r.Effects, []Effect{BumpHistory, ResetAttempt})
	}},
	{"whatever changes the history counts its version up", func(r Rule, _ Edge) bool {
		changes := has(r, TruncateFrom, AppendPartial, CancelCalls, AppendMessage, PromoteHead, AppendStep,
			AppendResults, BeginContext)
		return !changes || has(r, BumpHistory)
	}},
	{"no fence is given twice: work begins again only on a new version", func(r Rule, e Edge) bool {
		begins := working(e.To) && (!working(e.From) || has(r, ResetAttempt))
		return !begins || has(r, BumpHistory)
	}},
	{"no attempt outlives the work", func(r Rule, e Edge) bool {
		return !working(e.From) || working(e.To) || has(r, ResetAttempt)
	}},
	{"an interrupted attempt keeps its fence", func(r Rule, e Edge) bool {
		enters := e.From == Running && e.To == Interrupting
		return !enters || !has(r, BumpHistory, ResetAttempt, NextAttempt)
	}},
	{"an edit runs again from there with an empty queue", func(r Rule, e Edge) bool {
		return r.Event != EditMessage || e.To == Running && has(r, TruncateFrom) && has(r, AppendMessage) &&
			has(r, ClearQueue) == e.From.Queues()
	}},
	{"deleting from the queue leaves the history alone", func(r Rule, e Edge) bool {
		return r.Event != DeleteQueued || (e.From == e.To && !has(r, BumpHistory))
	}},
	{"a new attempt is a new number", func(r Rule, _ Edge) bool {
		return has(r, NextAttempt) == (r.Event == RecordAttempt)
	}},
	{"no effect is listed twice", func(r Rule, _ Edge) bool {
		return len(slices.Compact(slices.Sorted(slices.Values(r.Effects)))) == len(r.Effects)
	}},
	{"a rule says why in one sentence", func(r Rule, _ Edge) bool {
		return strings.HasSuffix(r.Why, ".") && strings.Count(r.Why, ". ") <= 1
	}},
}

func TestEveryEdgeObeysTheLaws(t *testing.T) {
	for _, law := range edgeLaws {
		t.Run(law.name, func(t *testing.T) {
			for _, r := range table {
				for _, e := range r.Edges {
					if !law.ok(r, e) {
						t.Errorf("%s: effects %v", label(r, e), r.Effects)
					}
				}
			}
		})
	}
}

// recorded is what the effects leave in the chat's status besides its state.
type recorded struct {
	state                                State
	failure, deadline, compaction, trial bool
}

func (m recorded) after(r Rule, e Edge) recorded {
	m.state = e.To
	for _, eff := range r.Effects {
		switch eff {
		case SetError, ClearError:
			m.failure = eff == SetError
		case SetDeadline, ClearDeadline:
			m.deadline = eff == SetDeadline
		case SetCompaction, ClearCompaction:
			m.compaction = eff == SetCompaction
		case NextAttempt, ResetAttempt:
			m.trial = eff == NextAttempt
		}
	}
	return m
}

// histories is everything that any sequence of events can leave recorded, beginning with a new chat and with an invalid
// one in which everything is wrong.
func histories() map[recorded]bool {
	wrong := recorded{state: Invalid, failure: true, deadline: true, compaction: true, trial: true}
	todo := []recorded{{state: None}, wrong}
	seen := map[recorded]bool{}
	for len(todo) > 0 {
		m := todo[0]
		todo = todo[1:]
		if seen[m] {
			continue
		}
		seen[m] = true
		for _, r := range table {
			for _, e := range r.Edges {
				if e.From == m.state {
					todo = append(todo, m.after(r, e))
				}
			}
		}
	}
	delete(seen, wrong)
	return seen
}

func TestWhatIsRecordedAlwaysFitsTheState(t *testing.T) {
	for m := range histories() {
		if m.failure != failed(m.state) {
			t.Errorf("%s: error recorded is %v", m.state, m.failure)
		}
		if m.deadline != awaiting(m.state) {
			t.Errorf("%s: deadline recorded is %v", m.state, m.deadline)
		}
		if m.compaction && m.state != Running {
			t.Errorf("%s: a compaction is marked", m.state)
		}
		if m.trial && !working(m.state) {
			t.Errorf("%s: an attempt is recorded", m.state)
		}
	}
}

func TestCompactionRequestSurvivesOnlyAttemptAndQueueEvents(t *testing.T) {
	carry := map[Event]bool{
		SendMessageQueue: true, DeleteQueued: true, Archive: true, Unarchive: true, RequestCompaction: true,
		RecordAttempt: true, RecordRetry: true, AttemptLost: true, ContextTooLong: true,
	}
	for _, r := range table {
		for _, e := range r.Edges {
			marked := recorded{state: e.From, compaction: true}
			if e.From == Running && marked.after(r, e).compaction != carry[r.Event] {
				t.Errorf("%s: the mark is carried: %v", label(r, e), !carry[r.Event])
			}
		}
	}
}
