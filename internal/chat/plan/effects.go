// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/cost"
)

// subject is what an event is about.
type subject struct {
	message string
	// interrupts is true for a message that cuts in.
	interrupts bool
	result     *v1alpha1.ChatMessage
	// results are a client's, if there are any.
	results *Results
	action  v1alpha1.GenerationAction
	err     *v1alpha1.GenerationError
	retry   *v1alpha1.RetryStatus
	// compaction is what asks for one.
	compaction v1alpha1.CompactionSource
	// ending is how the turn ends, for an event that ends one.
	ending v1alpha1.TurnResult
	// attempt is how the attempt under way ended; nil: nobody waits for its result any more.
	attempt *AttemptEnd
}

func (p *pass) state() machine.State {
	st := p.status()
	if st.History.Version == 0 {
		return machine.None
	}
	return machine.StateOf(st.Phase, len(st.Queue), st.Archived)
}

// try asks the state machine for the transition and carries out its effects on the status, or says why the event is refused.
func (p *pass) try(event machine.Event, s subject) (refused machine.Reason) {
	t, refused := machine.Next(p.state(), event, p.machineFacts())
	if refused != "" {
		return refused
	}
	p.firing = Transition{Event: event, From: t.From, To: t.To}
	for _, effect := range t.Effects {
		effects[effect](p, s)
	}
	p.status().Phase, p.status().Archived = t.To.Phase(), t.To.Archived()
	p.recordAttempt(s)
	p.plan.Transitions = append(p.plan.Transitions, p.firing)
	return ""
}

// fire is try for an event that is asked for only where it is possible.
func (p *pass) fire(event machine.Event, s subject) error {
	from := p.state()
	if refused := p.try(event, s); refused != "" {
		return fmt.Errorf("firing %s in state %s: refused with %s: %s", event, from, refused, refused.Meaning())
	}
	return nil
}

func (p *pass) machineFacts() machine.Facts {
	st := p.status()
	return machine.Facts{
		QueueLen:       len(st.Queue),
		QueueCap:       int(p.chat.Spec.MaxQueueOrDefault()),
		CutInRoom:      v1alpha1.RoomToCutIn,
		CallsUnread:    len(p.facts.Calls) == 0,
		Unanswered:     p.facts.Truncated != nil && p.facts.Truncated.Unanswered,
		Suspended:      p.facts.Suspended,
		SubChatsAtWork: p.subChatsAtWork(),
		NoCapacity:     p.facts.NoCapacity != "",
		PodRefused:     p.facts.PodRefused != "",
		RetryWaits:     st.Retry != nil && p.facts.Now.Before(st.Retry.At.Time),
		FamilyBusy:     p.facts.FamilyAtWork != "",
		ParentArchived: p.facts.ParentArchived,
		Clearable:      st.History.Length > st.History.ContextStart,
		Compactable:    p.compactable(),
	}
}

// effects is how each effect changes the status. Of calls that are given up it keeps why; the results that say so are made where the
// prompt is built.
var effects = map[machine.Effect]func(*pass, subject){
	machine.EnqueueMessage: func(p *pass, s subject) {
		p.status().Queue = append(p.status().Queue, v1alpha1.QueuedMessage{Name: s.message, Interrupts: s.interrupts})
	},
	machine.EnqueueCutIn: func(p *pass, s subject) { p.cutIn(s.message) },
	machine.ReorderQueue: func(p *pass, s subject) { p.cutIn(s.message) },
	machine.ClearQueue:   func(p *pass, _ subject) { p.clearQueue() },
	machine.TruncateFrom: func(p *pass, _ subject) { p.truncateFrom() },
	machine.AppendPartial: func(p *pass, s subject) {
		if s.result != nil {
			p.appendStep(s.result)
		}
	},
	machine.BeginContext: func(p *pass, _ subject) {
		p.beginContext(p.status().History.Length)
		p.status().Context = nil
	},
	machine.RemoveQueued: func(p *pass, s subject) {
		named := func(q v1alpha1.QueuedMessage) bool { return q.Name == s.message }
		p.status().Queue = slices.DeleteFunc(p.status().Queue, named)
	},
	machine.AppendMessage: func(p *pass, s subject) { p.appendUser(s.message) },
	machine.PromoteHead:   func(p *pass, _ subject) { p.promoteHead() },
	machine.AppendStep:    func(p *pass, s subject) { p.appendStep(s.result) },
	machine.BumpHistory:   func(p *pass, _ subject) { p.status().History.Version++ },
	machine.ResetAttempt: func(p *pass, _ subject) {
		p.status().Generation, p.status().Retry, p.plan.NeedsPod = nil, nil, false
		switch p.held {
		case machine.RetryNotDue, machine.SubChatsAtWork, machine.CallsUnread: // That held a step that is no more.
			p.held = ""
		}
	},
	machine.SetRetry:        func(p *pass, s subject) { p.status().Retry, p.status().Generation = s.retry, nil },
	machine.SetCompaction:   func(p *pass, s subject) { p.setCompaction(s.compaction) },
	machine.NextAttempt:     func(p *pass, s subject) { p.nextAttempt(s.action) },
	machine.SetError:        func(p *pass, s subject) { p.setError(s.err) },
	machine.ClearError:      func(p *pass, _ subject) { p.clearError() },
	machine.GiveUpCalls:     func(p *pass, _ subject) { p.giveUpOutstanding() },
	machine.AppendResults:   func(p *pass, s subject) { p.appendResults(s.results) },
	machine.SetDeadline:     func(p *pass, _ subject) { p.setDeadline() },
	machine.ClearCompaction: func(p *pass, s subject) { p.clearCompaction(s) },
	machine.ClearDeadline:   func(p *pass, s subject) { p.clearDeadline(s) },
	machine.EndTurn:         func(p *pass, s subject) { p.endTurn(s.ending, "") },
}

func (p *pass) promoteHead() {
	st := p.status()
	next := st.Queue[0].Name
	st.Queue = slices.Delete(st.Queue, 0, 1)
	p.appendUser(next)
}

func (p *pass) setError(e *v1alpha1.GenerationError) {
	st := p.status()
	st.LastError = &v1alpha1.LastError{GenerationError: *e, Time: metav1.NewTime(p.facts.Now)}
	p.endTurn(v1alpha1.TurnFailed, e.Reason)
}

func (p *pass) clearError() {
	st := p.status()
	p.plan.PodAfter = podAfter(st.LastError)
	st.LastError = nil
}

// appendUser makes the message the head and begins a turn with it.
func (p *pass) appendUser(message string) {
	st := p.status()
	if st.Turn != nil && st.Turn.Index < st.History.Length { // An edited message takes its own place again.
		p.plan.Replaced = append(p.plan.Replaced, st.Turn)
		p.endTurn(v1alpha1.TurnInterrupted, "") // Unless it has ended: then its calls were given up for this message.
	}
	begins, before := p.said(message), p.givenUpBefore(message)
	p.entitle(begins)
	st.Turn = &v1alpha1.TurnStatus{
		Message: message, Parent: st.History.Head, Index: st.History.Length, ContentHash: begins.ContentHash,
		HistoryVersion: st.History.Version + 1, LastRole: v1alpha1.RoleUser,
		ModelConfig: begins.ModelConfig, ReasoningEffort: begins.Effort,
		StartedAt: new(metav1.NewMicroTime(p.facts.Now)), Traceparent: begins.Traceparent, CallsGivenUpBefore: before,
	}
	st.History.Head = message
	st.History.Length++
	p.firing.Began = st.Turn
}

// givenUpBefore is why calls of the reply before the message have no result. An edited message knows it from its first commit.
func (p *pass) givenUpBefore(message string) v1alpha1.CallsGivenUp {
	if e := p.facts.Edited; e != nil && e.Name == message && p.firing.Event == machine.EditMessage {
		return e.CallsGivenUpBefore
	}
	if t := p.status().Turn; t != nil {
		return t.CallsGivenUp
	}
	return ""
}

// appendStep makes the result the head.
func (p *pass) appendStep(result *v1alpha1.ChatMessage) {
	st, g := p.status(), result.Spec.Generation
	if result.Spec.Role == v1alpha1.RoleSystem {
		p.appendSummary(result)
		return
	}
	st.History.Head = result.Name
	st.History.Length++
	st.Turn.LastRole = result.Spec.Role
	if result.Spec.Role == v1alpha1.RoleAssistant {
		st.Turn.PendingCalls, st.Turn.AwaitingCalls, st.Turn.CallingMessage, st.Turn.CallsGivenUp = g.PendingCalls, g.AwaitingCalls, "", ""
		if g.PendingCalls > 0 {
			st.Turn.CallingMessage = result.Name
		}
		st.Turn.WaitsFor = pendingWaits(g.WaitsFor)
	} else {
		st.Turn.PendingCalls, st.Turn.Decisions = st.Turn.AwaitingCalls, nil
		st.Turn.WaitsFor = waitsLeft(st.Turn)
		stop(st.Turn, g.StoppedBy)
	}
	p.account(result)
	if result.Spec.Role == v1alpha1.RoleAssistant {
		st.Turn.Steps++
		st.LastReply, st.Context = g.Preview, g.Context
	}
	conditions.MarkTruncated(st, result.Name, g.Truncated, p.facts.Now)
	if g.Truncated {
		p.notice(v1alpha1.ReasonReplyTooLarge, "Commit", "Message "+result.Name+" was cut at 1 MiB, the most that one object holds")
	}
}

// account adds what a step has used up.
func (p *pass) account(result *v1alpha1.ChatMessage) {
	st, g := p.status(), result.Spec.Generation
	if g.Usage != nil {
		st.Usage = st.Usage.Add(*g.Usage)
	}
	if g.Cost != nil {
		st.Cost = cost.Add(st.Cost, *g.Cost)
	}
	if call := g.TitleCall; call != nil {
		st.Usage = st.Usage.Add(call.Usage)
		if call.Cost != nil {
			st.Cost = cost.Add(st.Cost, *call.Cost)
		}
	}
	p.takeTitle(result)
	p.accountAdvice(g)
}

// podAfter is the time after which a pod must have been created to have a corrected API key, if the turn failed for want
// of a valid one: a running pod sees a changed Secret only after a minute or two.
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
