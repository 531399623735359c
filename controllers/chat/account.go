// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/turn"
)

// account is what a status write did, as far as it is measured. It follows from the status before and after it, so that
// exactly one manager counts it: the one whose write went through.
type account struct {
	began []*v1alpha1.TurnStatus
	ended []endedTurn
	// attempt that ended; empty outcome if none did.
	action          v1alpha1.GenerationAction
	outcome, reason string
	// provider and model that the attempt asked, as far as its result says, and whether it is made again.
	provider, model string
	retried         bool
	// compaction is how one ended, if one did.
	compaction string
	// assigned and finished are how long before the write its attempt was assigned and had ended, if a step was committed.
	committed          bool
	assigned, finished time.Duration
	// capacityWait is how long the step that was begun had to wait for a place; nil if it had not.
	capacityWait *time.Duration
	// clientOutcome is what became of clientCalls.
	clientOutcome string
	clientCalls   int
}

type endedTurn struct {
	*v1alpha1.TurnStatus
	result, reason string
}

func accountOf(f *turn.Facts, plan *turn.Plan) account {
	var a account
	before, after := &f.Chat.Status, &plan.Status
	a.turns(before.Turn, slices.Concat(plan.Ended, []*v1alpha1.TurnStatus{after.Turn}), after, f.Now)
	a.attempt(f, before, after, plan.Ended)
	a.compacted()
	if since := before.WaitingSince; since != nil && after.WaitingSince == nil && after.Generation != nil {
		a.capacityWait = new(f.Now.Sub(since.Time))
	}
	a.clients(before, plan)
	return a
}

// turns finds the turns that began and ended. One that is gone without an end was cut off by an edit or a deletion; one that
// comes back because what followed it was deleted neither begins nor ends.
func (a *account) turns(before *v1alpha1.TurnStatus, turns []*v1alpha1.TurnStatus, after *v1alpha1.ChatStatus, now time.Time) {
	left := before
	for _, t := range turns {
		if t == nil {
			continue
		}
		if sameTurn(before, t) {
			left = nil
			if before.Result != "" {
				continue
			}
		} else if t.StartedAt == nil || !t.StartedAt.Time.Equal(now) {
			continue
		} else {
			a.began = append(a.began, t)
		}
		if t.Result != "" {
			a.ended = append(a.ended, endedTurn{t, string(t.Result), failureOf(t, after)})
		}
	}
	if left != nil && left.Result == "" {
		a.ended = append(a.ended, endedTurn{left, telemetry.TurnSuperseded, ""})
	}
}

func sameTurn(a, b *v1alpha1.TurnStatus) bool {
	return a != nil && b != nil && a.Message == b.Message && a.HistoryVersion == b.HistoryVersion && a.ResumedVersion == b.ResumedVersion
}

// failureOf is why the turn failed. Only of the newest turn the status still says it.
func failureOf(t *v1alpha1.TurnStatus, after *v1alpha1.ChatStatus) string {
	switch {
	case t.Result != v1alpha1.TurnFailed:
		return ""
	case t == after.Turn && after.LastError != nil:
		return string(after.LastError.Reason)
	}
	return telemetry.Other
}

// attempt finds out how the attempt under way ended, if it did.
func (a *account) attempt(f *turn.Facts, before, after *v1alpha1.ChatStatus, ended []*v1alpha1.TurnStatus) {
	g := before.Generation
	if g == nil || goesOn(before, after) {
		return
	}
	a.action, a.outcome = g.Action, telemetry.OutcomeAbandoned
	result := resultOf(f.Chat, f.Result)
	a.asked(result)
	switch {
	case result == nil && f.PodLost:
		a.outcome = string(v1alpha1.OutcomeLost)
	case result == nil:
	case !succeeded(result):
		a.failed(result, before, after)
	case result.Outcome == v1alpha1.OutcomeInterrupted && !isIn(f.Result.Name, after, ended):
		a.outcome = string(result.Outcome)
	case isIn(f.Result.Name, after, ended):
		a.outcome, a.committed = string(result.Outcome), true
		a.assigned, a.finished = f.Now.Sub(g.StartedAt.Time), f.Now.Sub(result.FinishedAt.Time)
	}
}

// asked takes down what the attempt asked, as far as its result says; nil: there is none.
func (a *account) asked(result *v1alpha1.MessageGeneration) {
	if result != nil && result.Model != nil {
		a.provider, a.model = result.Model.Provider, result.Model.Name
	}
}

// goesOn reports whether the attempt under way is the same after the write.
func goesOn(before, after *v1alpha1.ChatStatus) bool {
	return attempts.Of("", after) == attempts.Of("", before)
}

// failed takes down why the attempt failed, and whether it is made again.
func (a *account) failed(result *v1alpha1.MessageGeneration, before, after *v1alpha1.ChatStatus) {
	a.outcome = string(result.Outcome)
	if result.Error == nil {
		return
	}
	a.reason, a.provider = string(result.Error.Reason), result.Error.Provider
	a.retried = after.Retry != nil || after.History.Version == before.History.Version && after.Generation != nil && after.Generation.Action == a.action
}

// compacted finds out how a compaction ended, if that is what the attempt was.
func (a *account) compacted() {
	switch {
	case a.action != v1alpha1.ActionCompact || a.retried || a.outcome == string(v1alpha1.OutcomeLost):
	case a.committed:
		a.compaction = telemetry.CompactionSucceeded
	case a.reason != "":
		a.compaction = telemetry.CompactionFailed
	default:
		a.compaction = telemetry.CompactionCancelled
	}
}

// resultOf is what the message says of the chat's attempt, if it is its result.
func resultOf(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) *v1alpha1.MessageGeneration {
	if !attempts.IsResult(chat, &chat.Status, m) {
		return nil
	}
	return m.Spec.Generation
}

func succeeded(g *v1alpha1.MessageGeneration) bool {
	return g.Outcome == v1alpha1.OutcomeCompleted || g.Outcome == v1alpha1.OutcomeInterrupted
}

// isIn reports whether the result has become part of the history: it is the head, or the next turn follows it.
func isIn(result string, after *v1alpha1.ChatStatus, ended []*v1alpha1.TurnStatus) bool {
	follows := func(t *v1alpha1.TurnStatus) bool { return t != nil && t.Parent == result }
	return after.History.Head == result || follows(after.Turn) || slices.ContainsFunc(ended, follows)
}

// clients counts the calls for a client that waited, if that is over.
func (a *account) clients(before *v1alpha1.ChatStatus, plan *turn.Plan) {
	if before.RequiresAction == nil || plan.Status.RequiresAction != nil {
		return
	}
	for i := range before.RequiresAction.ToolCalls {
		if before.RequiresAction.ToolCalls[i].Kind == v1alpha1.AwaitsClient {
			a.clientCalls++
		}
	}
	a.clientOutcome = telemetry.CallCancelled
	if t := plan.Status.Turn; t != nil && t.Results != nil && slices.Contains(plan.Taken, t.Results.Message) {
		a.clientOutcome = telemetry.CallSucceeded
	}
}
