// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/text/clip"
)

// proceed starts the next action of the turn, or ends it; ending it may promote a queued message, which begins a turn.
func proceed(p *pass) error {
	for p.status().Phase == v1beta1.ChatRunning && p.status().Generation == nil && p.held == "" {
		if err := takeNextAction(p); err != nil {
			return err
		}
	}
	return nil
}

func takeNextAction(p *pass) error {
	switch next := decideNextAction(actionRules, progressOf(p)); next.action {
	case executeTools:
		beginWaiting(p)
		return assign(p, v1beta1.ActionExecuteTools)
	case failTurn:
		return failTurnWith(p, errorOf(p, next.ending), "")
	case requireAction:
		if calling := p.status().Internal.Turn.CallingMessage; calling != p.facts.CallsOf {
			p.plan.Asks.Calls = calling
		}
		// Without the message that made the calls no one could be asked: it was deleted, which the next pass will find out.
		p.held = p.try(machine.EnterRequiresAction, subject{})
		return nil
	case finishTurn:
		return p.fire(machine.FinishTurn, subject{ending: turnResult(p, next.ending)})
	default:
		return assign(p, v1beta1.GenerationAction(next.action))
	}
}

func progressOf(p *pass) progress {
	t, in := p.status().Turn, &p.status().Internal.Turn
	return progress{
		maxSteps:             int(p.chat.Spec.MaxStepsOrDefault()),
		stepsInTurn:          int(t.Steps),
		outstandingCalls:     int(in.PendingCalls),
		callsRequiringAction: int(in.CallsRequiringAction),
		headIsAssistant:      in.LastRole == v1beta1.RoleAssistant,
		paused:               int(in.Pauses),
		invalidOutputs:       int(in.InvalidOutputs),
		stoppedByTool:        t.StoppedBy != "",
		turnOver:             t.Result != "",
		compactionAsked:      p.status().Internal.Compaction != "",
		fill:                 contextFill(p),
	}
}

// turnResult is how a turn ends normally; empty if it had ended before.
func turnResult(p *pass, e ending) v1beta1.TurnResult {
	switch e {
	case complete:
		return conditions.ResultOf(p.status().Internal.Turn.ReplyOutcome)
	case stoppedAfterTool:
		return v1beta1.TurnStoppedAfterTool
	case maxStepsReached:
		return v1beta1.TurnMaxStepsReached
	}
	return ""
}

// errorOf is the error of a turn that fails.
func errorOf(p *pass, e ending) v1beta1.GenerationError {
	switch e {
	case pausedTooOften:
		return v1beta1.GenerationError{
			Reason:  v1beta1.ErrorReplyFailed,
			Message: fmt.Sprintf("The provider paused %d replies in a row (finish reason pause_turn)", maxPauses),
			Advice:  "Send a message to continue",
		}
	case outputInvalid:
		return v1beta1.GenerationError{
			Reason: v1beta1.ErrorOutputInvalid, Message: invalidOutput(p),
			Advice: "Correct the schema, or name another model, then send a message to continue",
		}
	}
	return contextStillOverLimit(p)
}

// maxInvalidOutput is how many bytes of what does not match an error has.
const maxInvalidOutput = 900

// invalidOutput says what of the newest answer does not match. Clients show the error, and few the condition.
func invalidOutput(p *pass) string {
	if c := meta.FindStatusCondition(p.status().Conditions, v1beta1.ConditionOutputReady); c != nil {
		return fmt.Sprintf("%d answers do not match the schema. %s", v1beta1.MaxOutputTries,
			clip.Ellipsis(c.Message, maxInvalidOutput))
	}
	return fmt.Sprintf("%d answers do not match the schema", v1beta1.MaxOutputTries)
}

// endTurn says how the turn ended, unless it has said so before and was only taken up for a compaction.
func endTurn(p *pass, result v1beta1.TurnResult, why v1beta1.ErrorReason) {
	if t := p.status().Turn; t != nil && t.Result == "" {
		t.Result = result
		p.firing.Ended = &TurnEnd{Turn: t.DeepCopy(), Reason: why}
	}
}

func assign(p *pass, action v1beta1.GenerationAction) error {
	if _, why := answeringModel(p); why != nil && !awaitsReference(p) {
		return failTurnWith(p, *why, action)
	}
	// What refuses an attempt only puts it off.
	refused := p.try(machine.RecordAttempt, subject{action: action})
	if refused == machine.OverBudget {
		p.overBudget = overBudget(p, action)
		if p.facts.Archive { // A chat that is to be archived does not wait for money.
			return failTurnWith(p, *p.overBudget, action)
		}
	}
	p.held = refused
	return nil
}

// failTurnWith ends the turn with an error that keeps the action from being tried; empty: there is none.
func failTurnWith(p *pass, e v1beta1.GenerationError, action v1beta1.GenerationAction) error {
	return failWith(p, subject{err: &e, action: action})
}

// failAfter ends the turn with an error that the attempt under way ended in.
func failAfter(p *pass, e v1beta1.GenerationError, attempt *AttemptEnd) error {
	return failWith(p, subject{err: &e, action: attempt.Action, attempt: attempt})
}

func failWith(p *pass, s subject) error {
	p.notice(v1beta1.EventReason(s.err.Reason), v1beta1.EventActionGenerate, eventOf(s.err))
	return p.fire(machine.FinishError, s)
}

// eventOf is the error as an Event has it: without words of a model.
func eventOf(e *v1beta1.GenerationError) string {
	if e.Reason == v1beta1.ErrorOutputInvalid {
		return fmt.Sprintf("%d answers do not match the schema; status.lastError says what is wrong", v1beta1.MaxOutputTries)
	}
	return e.Text()
}

func setError(p *pass, e *v1beta1.GenerationError, action v1beta1.GenerationAction) {
	st := p.status()
	st.LastError = &v1beta1.LastError{GenerationError: *e, Time: metav1.NewTime(p.facts.Now), Action: action}
	endTurn(p, v1beta1.TurnFailed, e.Reason)
}

func clearError(p *pass) {
	st := p.status()
	p.plan.PodAfter = podAfter(st.LastError)
	st.LastError = nil
}

// beginTurn makes the message the head and begins a turn with it.
func beginTurn(p *pass, message string) {
	st := p.status()
	begins, before := messageNamed(p, message), beforeCommit(p, message)
	titleFromMessage(p, begins)
	conditions.MarkOutput(st, "", nil, p.facts.Now)
	setTurn(st, TurnRecord{&v1beta1.TurnStatus{
		Message: message, Parent: st.History.Head, Index: st.History.Length, HistoryVersion: st.History.Version + 1,
		ModelConfig: begins.ModelConfig, ReasoningEffort: begins.Effort,
		StartedAt: new(metav1.NewMicroTime(p.facts.Now)), Traceparent: begins.Traceparent,
	}, v1beta1.TurnInternalStatus{
		ContentHash: begins.ContentHash, CallsCanceledReasonBefore: before.CallsCanceledReasonBefore, MessageUID: begins.UID,
		LastRole: cmp.Or(begins.LastRole, v1beta1.RoleUser),
	}})
	before.Message, before.UID, before.ContentHash = message, begins.UID, begins.ContentHash
	p.appendCommit(before)
	p.firing.Began = st.Turn
}

// beforeCommit is what the commit of the message records of the turn before: how it ended, and why its last calls
// have no result. An edited message knows it from its first commit.
func beforeCommit(p *pass, message string) v1beta1.CommittedMessage {
	if e := p.facts.Edited; e != nil && e.Name == message && p.firing.Event == machine.EditMessage {
		return v1beta1.CommittedMessage{CallsCanceledReasonBefore: e.Commit.CallsCanceledReasonBefore,
			PreviousTurn: e.Commit.PreviousTurn}
	}
	t := p.status().Turn
	if t == nil {
		return v1beta1.CommittedMessage{}
	}
	endTurn(p, v1beta1.TurnInterrupted, "") // Unless it has ended: then its calls were given up for this message.
	outcome := conditions.OutcomeOf(t, &p.status().Internal.Turn, p.status().LastError)
	outcome.Error = clip.Ellipsis(outcome.Error, maxOutcomeError)
	return v1beta1.CommittedMessage{CallsCanceledReasonBefore: t.CallsCanceledReason, PreviousTurn: outcome}
}

// maxOutcomeError bounds TurnOutcome.Error.
const maxOutcomeError = 512

// appendCommit makes the message of a person or a client the head of the history.
func (p *pass) appendCommit(commit v1beta1.CommittedMessage) {
	st := p.status()
	commit.Parent, commit.Position, commit.HistoryVersion = st.History.Head, st.History.Length, st.History.Version+1
	st.Internal.Tail = append(st.Internal.Tail, commit)
	st.History.Head = commit.Message
	st.History.Length++
}

// appendGenerated makes the generated message the head of the history. It says which messages it follows.
func (p *pass) appendGenerated(message string) {
	st := p.status()
	st.Internal.Tail = nil
	st.History.Head = message
	st.History.Length++
}

// podAfter is the time after which a pod must have been created to have a corrected API key, if the turn failed for
// want of a valid one: a running pod sees a changed Secret only after a minute or two.
func podAfter(e *v1beta1.LastError) (after time.Time) {
	if e == nil {
		return after
	}
	switch e.Reason {
	case v1beta1.ErrorAuthenticationFailed, v1beta1.ErrorPermissionDenied, v1beta1.ErrorAPIKeyMissing:
		return e.Time.Time
	}
	return after
}

// followPhase does what the phase that was just reached demands. Calls that an interruption cancelled end the turn: the
// model must not continue without them.
func followPhase(p *pass) error {
	interrupts := p.firing.Event == machine.Interrupt || p.firing.Event == machine.SendMessageInterrupt
	if interrupts && p.firing.From.Phase() == v1beta1.ChatRequiresAction {
		if err := p.fire(machine.Interrupt, subject{}); err != nil {
			return err
		}
	}
	if p.status().Phase == v1beta1.ChatInterrupting {
		return stopAttempt(p)
	}
	return proceed(p)
}
