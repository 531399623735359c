// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// specified is the specification of the machine, cell by cell and independent of the table: what each event leads to.
// What stands before a colon is when: "empty" and "queued" say whether messages wait in the queue, "due" that what is
// left of the history must be answered; the first that fits counts. Behind the target stands what is done with the
// queue. (a): append to the tail, then promote the head, clear the error. (b): cancel the pending calls; the message
// stays queued, and the turn first continues. (c): the head of the queue is committed in the same write. "back" is the
// same state without the archive.
const specified = `
| transition             | Waiting         | Error                                  | Running                                | Interrupting                           | RequiresAction                         | Archived |
| Create                 | —               | —                                      | —                                      | —                                      | —                                      | —    |
| Fork                   | —               | —                                      | —                                      | —                                      | —                                      | —    |
| SendMessageQueue       | Running         | Running (a)                            | Running queue                          | Interrupting queue                     | RequiresAction queue                   | —    |
| SendMessageInterrupt   | Running         | Running (a)                            | Interrupting next                      | Interrupting next                      | Running (b)                            | —    |
| EditMessage            | Running         | Running clear                          | Running clear                          | Running clear                          | Running clear                          | —    |
| DeleteMessage          | due: Running; Waiting | due: Running; empty: Waiting; queued: Running (c) | due: Running; empty: Waiting; queued: Running (c) | due: Running; empty: Waiting; queued: Running (c) | due: Running; empty: Waiting; queued: Running (c) | — |
| DeleteQueued           | —               | Error                                  | Running                                | Interrupting                           | RequiresAction                         | —    |
| PromoteQueued          | —               | Running now                            | Interrupting reorder                   | Interrupting reorder                   | Running now                            | —    |
| Interrupt              | —               | —                                      | Interrupting                           | —                                      | Running                                | —    |
| CompleteRequiresAction | —               | —                                      | —                                      | —                                      | Running                                | —    |
| CancelRequiresAction   | —               | —                                      | —                                      | —                                      | Running                                | —    |
| RecordAttempt          | —               | —                                      | Running                                | —                                      | —                                      | —    |
| RecordRetry            | —               | —                                      | Running                                | —                                      | —                                      | —    |
| AttemptLost            | —               | —                                      | Running                                | —                                      | —                                      | —    |
| ContextTooLong         | —               | —                                      | Running                                | —                                      | —                                      | —    |
| CommitStep             | —               | —                                      | Running                                | —                                      | —                                      | —    |
| EnterRequiresAction    | —               | —                                      | RequiresAction                         | —                                      | —                                      | —    |
| FinishTurn             | —               | —                                      | empty: Waiting; queued: Running (c)    | —                                      | —                                      | —    |
| FinishError            | —               | —                                      | Error                                  | —                                      | —                                      | —    |
| FinishInterruption     | —               | —                                      | —                                      | empty: Waiting; queued: Running (c)    | —                                      | —    |
| RequestCompaction      | Running         | Running                                | —                                      | —                                      | —                                      | —    |
| ClearContext           | Waiting         | empty: Waiting                         | —                                      | —                                      | —                                      | —    |
| Archive                | ArchivedWaiting | ArchivedError                          | —                                      | —                                      | —                                      | —    |
| Unarchive              | —               | —                                      | —                                      | —                                      | —                                      | back |
| ReconcileInvalid       | —               | —                                      | —                                      | —                                      | —                                      | —    |
`

// noted is what the word behind a target demands of the effects: all of these, in this order.
var noted = map[string][]Effect{
	"queue":   {EnqueueMessage},
	"next":    {EnqueueCutIn},
	"clear":   {ClearQueue, TruncateFrom, AppendMessage},
	"(a)":     {EnqueueMessage, PromoteHead, ClearError},
	"(b)":     {EnqueueCutIn, CancelCalls},
	"(c)":     {PromoteHead},
	"now":     {ReorderQueue, PromoteHead},
	"reorder": {ReorderQueue},
}

// promotes is true where a message leaves the queue for the history at once.
var promotes = map[string]bool{"(a)": true, "(c)": true, "now": true}

// outcome is one of those that a cell of the specification has.
type outcome struct {
	when   string
	target State
	note   string
}

func (o outcome) holds(f Facts) bool {
	switch o.when {
	case "empty":
		return f.QueueLen == 0
	case "queued":
		return f.QueueLen > 0
	case "due":
		return f.Unanswered
	}
	return true
}

type specification map[cell][]outcome

// of is what the specification says of the event; false if it is refused.
func (s specification) of(c cell, f Facts) (outcome, bool) {
	i := slices.IndexFunc(s[c], func(o outcome) bool { return o.holds(f) })
	if i < 0 {
		return outcome{}, false
	}
	return s[c][i], true
}

// parseSpecified reads the matrix, and adds the cells that do not fit into its columns.
func parseSpecified(t *testing.T) specification {
	t.Helper()
	out := specification{
		{None, Create}:              {{target: Running}},
		{None, Fork}:                {{when: "due", target: Running}, {target: Waiting}},
		{Invalid, ReconcileInvalid}: {{target: Error}},
	}
	lines := strings.Split(strings.TrimSpace(specified), "\n")
	header := fields(lines[0])
	for _, line := range lines[1:] {
		row := fields(line)
		if len(row) != len(header) {
			t.Fatalf("line %q has %d columns, want %d", line, len(row), len(header))
		}
		for i, text := range row[1:] {
			for _, s := range columnStates(header[i+1]) {
				if text != "—" {
					out[cell{s, Event(row[0])}] = parseCell(text, s)
				}
			}
		}
	}
	return out
}

func fields(line string) []string {
	var out []string
	for f := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
		out = append(out, strings.TrimSpace(f))
	}
	return out
}

func columnStates(column string) []State {
	if column == "Archived" {
		return []State{ArchivedWaiting, ArchivedError}
	}
	return []State{State(column)}
}

func parseCell(text string, from State) (outcomes []outcome) {
	for part := range strings.SplitSeq(text, "; ") {
		var o outcome
		if when, rest, found := strings.Cut(part, ": "); found {
			o.when, part = when, rest
		}
		target, note, _ := strings.Cut(part, " ")
		o.target, o.note = State(target), note
		if target == "back" {
			o.target = State(strings.TrimPrefix(string(from), "Archived"))
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

func TestTransitionTableMatchesSpecification(t *testing.T) {
	want := parseSpecified(t)
	for asked := range questions() {
		got, refusal := Lookup(asked.state, asked.event, asked.facts)
		wanted, possible := want.of(asked.cell, asked.facts)
		switch {
		case refusal == "" && (!possible || got.To != wanted.target):
			t.Fatalf("%s in %s leads to %s, specified is %q: %+v", asked.event, asked.state, got.To, wanted.target, asked.facts)
		case refusal == "" && !inOrder(got.Effects, noted[wanted.note]):
			t.Fatalf("%s in %s: note %q demands %v, the effects are %v", asked.event, asked.state, wanted.note,
				noted[wanted.note], got.Effects)
		case refusal == "" && slices.Contains(got.Effects, PromoteHead) != promotes[wanted.note]:
			t.Fatalf("%s in %s: note %q and the effects %v disagree about promotion", asked.event, asked.state, wanted.note,
				got.Effects)
		case refusal != "" && possible && !guarded(refusal):
			t.Fatalf("%s in %s is refused with %s, specified is %s: %+v", asked.event, asked.state, refusal, wanted.target,
				asked.facts)
		}
	}
}

// guarded reports whether a guard refuses with the reason.
func guarded(reason Reason) bool {
	return slices.ContainsFunc(Guards(), func(g Guard) bool { return g.Refuses() == reason })
}

func TestTheSpecificationNamesEveryEvent(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(specified), "\n")[1:]
	var named []Event
	for _, l := range lines {
		named = append(named, Event(fields(l)[0]))
	}
	got, want := slices.Sorted(slices.Values(named)), slices.Sorted(slices.Values(Events()))
	if !slices.Equal(got, want) {
		t.Errorf("specified are %v, the machine has %v", got, want)
	}
}

// inOrder reports whether wanted is a subsequence of have.
func inOrder(have, wanted []Effect) bool {
	for _, w := range wanted {
		i := slices.Index(have, w)
		if i < 0 {
			return false
		}
		have = have[i+1:]
	}
	return true
}

func label(r Rule, e Edge) string { return fmt.Sprintf("%s from %s to %s", r.Event, e.From, e.To) }
