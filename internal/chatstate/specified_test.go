// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// specified is the specification of the machine, cell by cell and independent of the table: what each event leads to.
// (d): a reply that is due is generated with the queue as it is, else the head of the queue is committed.
// (a): append to the tail, then promote the head, clear the error. (b): cancel the pending calls; the message stays
// queued, and the turn first continues. (c): the head of the queue is committed in the same write. "back" is the same
// state without the archive.
const specified = `
| transition                         | W  | E0  | E1        | R0 | R1         | I0 | I1         | A0     | A1        | X*   |
| SendMessageQueue                   | R0 | R0  | R1 (a)    | R1 | R1         | I1 | I1         | A1     | A1        | —    |
| SendMessageInterrupt               | R0 | R0  | R1 (a)    | I1 | I1         | I1 | I1         | R1 (b) | R1 (b)    | —    |
| EditMessage                        | R0 | R0  | R0        | R0 | R0         | R0 | R0         | R0     | R0        | —    |
| DeleteMessage                      | R0/W | R0/W | R0/R1 (d) | R0/W | R0/R1 (d) | R0/W | R0/R1 (d) | R0/W | R0/R1 (d) | —    |
| DeleteQueued                       | —  | —   | E0/E1     | —  | R0/R1      | —  | I0/I1      | —      | A0/A1     | —    |
| PromoteQueued                      | —  | —   | R0/R1 now | —  | I1 reorder | —  | I1 reorder | —      | R0/R1 now | —    |
| Interrupt                          | —  | —   | —         | I0 | I1         | —  | —          | R0     | R1        | —    |
| CompleteRequiresAction             | —  | —   | —         | —  | —          | —  | —          | R0     | R1        | —    |
| CancelRequiresAction               | —  | —   | —         | —  | —          | —  | —          | R0     | R1        | —    |
| RecordAttempt                      | —  | —   | —         | R0 | R1         | —  | —          | —      | —         | —    |
| RecordRetry                        | —  | —   | —         | R0 | R1         | —  | —          | —      | —         | —    |
| AttemptLost                        | —  | —   | —         | R0 | R1         | —  | —          | —      | —         | —    |
| CommitStep                         | —  | —   | —         | R0 | R1         | —  | —          | —      | —         | —    |
| EnterRequiresAction                | —  | —   | —         | A0 | A1         | —  | —          | —      | —         | —    |
| FinishTurn                         | —  | —   | —         | W  | R0/R1 (c)  | —  | —          | —      | —         | —    |
| FinishError                        | E0 | —   | —         | E0 | E1         | —  | —          | —      | —         | —    |
| FinishInterruption                 | —  | —   | —         | —  | —          | W  | R0/R1 (c)  | —      | —         | —    |
| RequestCompaction                  | R0 | R0  | R1        | —  | —          | —  | —          | —      | —         | —    |
| ClearContext                       | W  | W   | —         | —  | —          | —  | —          | —      | —         | —    |
| Archive                            | XW | XE0 | XE1       | —  | —          | —  | —          | —      | —         | —    |
| Unarchive                          | —  | —   | —         | —  | —          | —  | —          | —      | —         | back |
| Create                             | —  | —   | —         | —  | —          | —  | —          | —      | —         | —    |
| ReconcileInvalid                   | —  | —   | —         | —  | —          | —  | —          | —      | —         | —    |
`

// noted is what the word behind a cell's states demands of the effects: all of these, in this order.
var noted = map[string][]Effect{
	"(a)":     {EnqueueMessage, PromoteHead, ClearError},
	"(b)":     {EnqueueCutIn, AnswerOutstandingCalls},
	"(c)":     {PromoteHead},
	"now":     {ReorderQueue, PromoteHead},
	"reorder": {ReorderQueue},
}

// promotes says whether a message leaves the queue for the history at once.
var promotes = map[string]bool{"(a)": true, "(c)": true, "now": true}

type specifiedCell struct {
	targets []string
	note    string
}

// parseSpecified reads the matrix, and adds the two rows that do not fit into its columns.
func parseSpecified(t *testing.T) map[cell]specifiedCell {
	t.Helper()
	out := map[cell]specifiedCell{
		{None, Create}:              {targets: []string{"R0"}},
		{Invalid, ReconcileInvalid}: {targets: []string{"E0", "E1"}},
	}
	lines := strings.Split(strings.TrimSpace(specified), "\n")
	header := fields(lines[0])
	for _, line := range lines[1:] {
		row := fields(line)
		if len(row) != len(header) {
			t.Fatalf("line %q has %d columns, want %d", line, len(row), len(header))
		}
		for i, text := range row[1:] {
			for _, name := range columnStates(header[i+1]) {
				s, err := ParseState(name)
				if err != nil {
					t.Fatal(err)
				}
				if text != "—" {
					out[cell{s, Event(row[0])}] = parseCell(text, name)
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

func columnStates(column string) []string {
	if column == "X*" {
		return []string{"XW", "XE0", "XE1"}
	}
	return []string{column}
}

func parseCell(text, state string) specifiedCell {
	targets, note, _ := strings.Cut(text, " ")
	if targets == "back" {
		targets = strings.TrimPrefix(state, "X")
	}
	return specifiedCell{strings.Split(targets, "/"), note}
}

func TestTheTableIsTheSpecifiedOneCellByCell(t *testing.T) {
	want := parseSpecified(t)
	for _, s := range States() {
		for _, e := range Events() {
			var got []string
			for target := range maps.Keys(surveyed().targets[cell{s, e}]) {
				got = append(got, target.String())
			}
			slices.Sort(got)
			if w := want[cell{s, e}].targets; !slices.Equal(got, w) {
				t.Errorf("%s in %s leads to %v, specified is %v", e, s, got, w)
			}
		}
	}
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

func TestTheNotesOfTheSpecificationAreEffects(t *testing.T) {
	want := parseSpecified(t)
	for _, r := range table {
		for _, e := range r.Edges {
			note := want[cell{e.From, r.Event}].note
			if !inOrder(r.Effects, noted[note]) {
				t.Errorf("%s: note %q demands %v, the effects are %v", label(r, e), note, noted[note], r.Effects)
			}
			if slices.Contains(r.Effects, PromoteHead) != (promotes[note] || note == "(d)" && slices.Contains(r.Guards, NoAnswerIsDue)) {
				t.Errorf("%s: note %q and the effects %v disagree about promotion", label(r, e), note, r.Effects)
			}
		}
	}
}

// inOrder says whether wanted is a subsequence of have.
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
