// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
)

// recordedTurn are the recordings of one turn, oldest first.
type recordedTurn struct {
	turn  v1alpha1.DebugTurn
	steps []v1alpha1.ChatDebugStep
}

// byTurn groups recordings, which come oldest first, by the turn that they are of.
// One that says nothing of a turn is of none.
func byTurn(steps []v1alpha1.ChatDebugStep) (turns []recordedTurn) {
	for i := range steps {
		var of v1alpha1.DebugTurn
		if t := steps[i].Turn; t != nil {
			of = *t
		}
		at := slices.IndexFunc(turns,
			func(t recordedTurn) bool { return t.turn.Message == of.Message && t.turn.Version == of.Version })
		if at < 0 {
			turns = append(turns, recordedTurn{turn: of})
			at = len(turns) - 1
		}
		if turns[at].turn.CreatedBy == "" {
			turns[at].turn.CreatedBy = of.CreatedBy
		}
		turns[at].steps = append(turns[at].steps, steps[i])
	}
	return turns
}

// inTurns are the recordings in the order in which they are listed.
func inTurns(steps []v1alpha1.ChatDebugStep) (all []v1alpha1.ChatDebugStep) {
	for _, t := range byTurn(steps) {
		all = append(all, t.steps...)
	}
	return all
}

// heading is a line about the whole turn; empty for recordings of none.
func (t *recordedTurn) heading() string {
	if t.turn.Message == "" {
		return ""
	}
	return "TURN of " + t.turn.Message + by(t.turn.CreatedBy) + ": " + strings.Join(t.totals(), ", ")
}

// totals are what the turn's calls came to together.
func (t *recordedTurn) totals() []string {
	var tokens int64
	var failed int
	var costs []v1alpha1.Cost
	for i := range t.steps {
		step := &t.steps[i].DebugRecording
		if step.Response != nil {
			tokens += step.Response.Usage.TotalTokens
		}
		if step.Cost != nil {
			costs = cost.Add(costs, *step.Cost)
		}
		failed += failures(step)
	}
	totals := []string{plural(len(t.steps), "model call"), plural(failed, "error"),
		strconv.FormatInt(tokens, 10) + " tokens"}
	for _, c := range costs {
		totals = append(totals, cost.String(c.MicroUnits, c.Currency))
	}
	return totals
}

// failures is how many attempts of a call failed.
func failures(r *v1alpha1.DebugRecording) (n int) {
	for i := range r.Attempts {
		if r.Attempts[i].State == v1alpha1.DebugError {
			n++
		}
	}
	if n == 0 && r.State == v1alpha1.DebugError { // Its attempts were left out.
		return 1
	}
	return n
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
