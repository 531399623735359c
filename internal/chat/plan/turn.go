// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/text/clip"
)

// proceed starts the next action of the turn, or ends it; ending it may promote a queued message, which begins a turn.
func (p turn) proceed() error {
	for p.status().Phase == v1alpha1.ChatRunning && p.status().Generation == nil && p.held == "" && !p.plan.Unfinished {
		if err := p.takeNextAction(); err != nil {
			return err
		}
	}
	return nil
}

func (p turn) takeNextAction() error {
	switch next := decideNextAction(actionRules, p.progress()); next.action {
	case executeTools:
		p.beginWaiting()
		return p.assign(v1alpha1.ActionExecuteTools)
	case failTurn:
		return p.fail(p.errorOf(next.ending), "")
	case requireAction:
		if calling := p.status().Internal.Turn.CallingMessage; calling != p.facts.CallsOf {
			p.plan.Asks.Calls = calling
		}
		// Without the message that made the calls nobody could be asked: it was deleted, which the next pass will find out.
		p.held = p.try(machine.EnterRequiresAction, subject{})
		return nil
	case finishTurn:
		if p.unwritten() && len(p.status().Queue) > 0 { // Its end would put the next turn in its place.
			p.putOff()
			return nil
		}
		return p.fire(machine.FinishTurn, subject{ending: p.resultOf(next.ending)})
	default:
		return p.assign(v1alpha1.GenerationAction(next.action))
	}
}

func (p turn) progress() progress {
	t, in := p.status().Turn, &p.status().Internal.Turn
	return progress{
		maxSteps:             int(p.chat.Spec.MaxStepsOrDefault()),
		stepsInTurn:          int(t.Steps),
		outstandingCalls:     int(in.PendingCalls),
		callsRequiringAction: int(in.CallsRequiringAction),
		headIsAssistant:      in.LastRole == v1alpha1.RoleAssistant,
		paused:               int(in.Pauses),
		invalidOutputs:       int(in.InvalidOutputs),
		stoppedByTool:        t.StoppedBy != "",
		turnOver:             t.Result != "",
		compactionAsked:      p.status().Internal.Compaction != "",
		fill:                 p.compaction().contextFill(),
	}
}

// resultOf is how a turn ends normally; empty if it had ended before.
func (p turn) resultOf(e ending) v1alpha1.TurnResult {
	switch e {
	case complete:
		return conditions.ResultOf(p.status().Internal.Turn.ReplyOutcome)
	case stoppedAfterTool:
		return v1alpha1.TurnStoppedAfterTool
	case maxStepsReached:
		return v1alpha1.TurnMaxStepsReached
	}
	return ""
}

// errorOf is the error of a turn that fails.
func (p turn) errorOf(e ending) v1alpha1.GenerationError {
	switch e {
	case pausedTooOften:
		return v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorReplyFailed,
			Message: fmt.Sprintf("The provider paused %d replies in a row (finish reason pause_turn)", maxPauses),
			Advice:  "Send a message to continue",
		}
	case outputInvalid:
		return v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorOutputInvalid, Message: p.invalidOutput(),
			Advice: "Correct the schema, or name another model, then send a message to continue",
		}
	}
	return p.compaction().stillOverLimit()
}

// maxInvalidOutput is how many bytes of what does not match an error has.
const maxInvalidOutput = 900

// invalidOutput says what of the newest answer does not match. Clients show the error, and few the condition.
func (p turn) invalidOutput() string {
	if c := meta.FindStatusCondition(p.status().Conditions, v1alpha1.ConditionOutputReady); c != nil {
		return fmt.Sprintf("%d answers do not match the schema. %s", v1alpha1.MaxOutputTries,
			clip.Ellipsis(c.Message, maxInvalidOutput))
	}
	return fmt.Sprintf("%d answers do not match the schema", v1alpha1.MaxOutputTries)
}

// end says how the turn ended, unless it has said so before and was only taken up for a compaction.
func (p turn) end(result v1alpha1.TurnResult, why v1alpha1.ErrorReason) {
	if t := p.status().Turn; t != nil && t.Result == "" {
		t.Result = result
		p.firing.Ended = &TurnEnd{Turn: t.DeepCopy(), Reason: why}
	}
}

func (p turn) assign(action v1alpha1.GenerationAction) error {
	if _, why := p.models().answering(); why != nil && !p.models().awaitsReference() {
		return p.fail(*why, action)
	}
	// What refuses an attempt only puts it off.
	refused := p.try(machine.RecordAttempt, subject{action: action})
	if refused == machine.OverBudget {
		p.overBudget = p.models().overBudget(action)
		if p.facts.Archive { // A chat that is to be archived does not wait for money.
			return p.fail(*p.overBudget, action)
		}
	}
	p.held = refused
	return nil
}

// fail ends the turn with an error that keeps the action from being tried; empty: there is none.
func (p turn) fail(e v1alpha1.GenerationError, action v1alpha1.GenerationAction) error {
	return p.failWith(subject{err: &e, action: action})
}

// failAfter ends the turn with an error that the attempt under way ended in.
func (p turn) failAfter(e v1alpha1.GenerationError, attempt *AttemptEnd) error {
	return p.failWith(subject{err: &e, action: attempt.Action, attempt: attempt})
}

func (p turn) failWith(s subject) error {
	p.notice(v1alpha1.EventReason(s.err.Reason), v1alpha1.EventActionGenerate, eventOf(s.err))
	return p.fire(machine.FinishError, s)
}

// eventOf is the error as an Event has it: without words of a model.
func eventOf(e *v1alpha1.GenerationError) string {
	if e.Reason == v1alpha1.ErrorOutputInvalid {
		return fmt.Sprintf("%d answers do not match the schema; status.lastError says what is wrong", v1alpha1.MaxOutputTries)
	}
	return e.Text()
}

func (p turn) setError(e *v1alpha1.GenerationError, action v1alpha1.GenerationAction) {
	st := p.status()
	st.LastError = &v1alpha1.LastError{GenerationError: *e, Time: metav1.NewTime(p.facts.Now), Action: action}
	p.end(v1alpha1.TurnFailed, e.Reason)
}

func (p turn) clearError() {
	st := p.status()
	p.plan.PodAfter = podAfter(st.LastError)
	st.LastError = nil
}

// begin makes the message the head and begins a turn with it.
func (p turn) begin(message string) {
	st := p.status()
	if st.Turn != nil && st.Turn.Index < st.History.Length { // An edited message takes its own place again.
		p.end(v1alpha1.TurnInterrupted, "") // Unless it has ended: then its calls were given up for this message.
		p.leave(recordOf(st))
	}
	begins, before := p.queue().said(message), p.givenUpBefore(message)
	p.captions().entitle(begins)
	conditions.MarkOutput(st, "", nil, p.facts.Now)
	setTurn(st, TurnRecord{&v1alpha1.TurnStatus{
		Message: message, Parent: st.History.Head, Index: st.History.Length, HistoryVersion: st.History.Version + 1,
		ModelConfig: begins.ModelConfig, ReasoningEffort: begins.Effort,
		StartedAt: new(metav1.NewMicroTime(p.facts.Now)), Traceparent: begins.Traceparent,
	}, v1alpha1.TurnInternalStatus{
		ContentHash: begins.ContentHash, CallsGivenUpBefore: before, LastRole: cmp.Or(begins.LastRole, v1alpha1.RoleUser),
	}})
	st.History.Head = message
	st.History.Length++
	p.firing.Began = st.Turn
}

// givenUpBefore is why calls of the reply before the message have no result.
// An edited message knows it from its first commit.
func (p turn) givenUpBefore(message string) v1alpha1.CallsGivenUp {
	if e := p.facts.Edited; e != nil && e.Name == message && p.firing.Event == machine.EditMessage {
		return e.CallsGivenUpBefore
	}
	if t := p.status().Turn; t != nil {
		return t.CallsGivenUp
	}
	return ""
}

// podAfter is the time after which a pod must have been created to have a corrected API key, if the turn failed for
// want of a valid one: a running pod sees a changed Secret only after a minute or two.
func podAfter(e *v1alpha1.LastError) (after time.Time) {
	if e == nil {
		return after
	}
	switch e.Reason {
	case v1alpha1.ErrorAuthenticationFailed, v1alpha1.ErrorPermissionDenied, v1alpha1.ErrorAPIKeyMissing:
		return e.Time.Time
	}
	return after
}

// follow does what the phase that was just reached demands.
func (p turn) follow() error {
	if p.status().Phase == v1alpha1.ChatInterrupting {
		return p.attempt().stop()
	}
	return p.proceed()
}
