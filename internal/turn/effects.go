// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chatstate"
	"parley.dev/parley/internal/cost"
	"parley.dev/parley/internal/status"
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
	answers    chatstate.Answers
}

func (p *pass) state() chatstate.State {
	st := p.status()
	if st.History.Version == 0 {
		return chatstate.None
	}
	return chatstate.StateOf(chatstate.Phase(st.Phase), len(st.Queue), st.Archived)
}

// fire asks the state machine for the transition and carries out its effects on the status.
func (p *pass) fire(event chatstate.Event, s subject) error {
	st := p.status()
	from := p.state()
	transition, err := chatstate.Next(from, event, chatstate.Facts{
		QueueLen:       len(st.Queue),
		QueueCap:       int(p.chat.Spec.MaxQueueOrDefault()),
		CutInRoom:      v1alpha1.RoomToCutIn,
		FirstMessage:   s.message != "",
		Target:         p.targetOf(s.message),
		Unanswered:     p.facts.Truncated != nil && p.facts.Truncated.Unanswered,
		Suspended:      p.facts.Suspended,
		SubChatsAtWork: p.subChatsAtWork(),
		NoCapacity:     p.facts.NoCapacity != "",
		PodRefused:     p.facts.PodRefused != "",
		RetryWaits:     st.Retry != nil && p.facts.Now.Before(st.Retry.At.Time),
		FamilyBusy:     p.facts.FamilyAtWork != "",
		ParentArchived: p.facts.ParentArchived,
		PendingCalls:   st.Turn != nil && st.Turn.AwaitingCalls > 0,
		Answers:        s.answers,
		Clearable:      st.History.Length > st.History.ContextStart,
		Compactable:    p.compactable(),
	})
	if err != nil {
		return fmt.Errorf("firing %s: %w", event, err)
	}
	p.event = event
	for _, effect := range transition.Effects {
		if err := p.carryOut(effect, s); err != nil {
			return err
		}
	}
	st.Phase, st.Archived = v1alpha1.ChatPhase(transition.To.Phase), transition.To.Archived
	p.plan.Transitions = append(p.plan.Transitions, Transition{Event: event, From: from, To: transition.To})
	return nil
}

func (p *pass) targetOf(message string) chatstate.Target {
	queued := func(q v1alpha1.QueuedMessage) bool { return q.Name == message }
	switch {
	case slices.ContainsFunc(p.status().Queue, queued):
		return chatstate.TargetQueued
	case p.facts.Edited != nil && p.facts.Edited.Name == message:
		return chatstate.TargetUser
	}
	return chatstate.TargetMissing
}

// effects is how each effect changes the status. Of calls that are given up it keeps why; the results that say so are made where the
// prompt is built. What an attempt under way has produced is fenced off by the new version, which changes nothing.
var effects = map[chatstate.Effect]func(*pass, subject){
	chatstate.EnqueueMessage: func(p *pass, s subject) {
		p.status().Queue = append(p.status().Queue, v1alpha1.QueuedMessage{Name: s.message, Interrupts: s.interrupts})
	},
	chatstate.EnqueueCutIn: func(p *pass, s subject) { p.cutIn(s.message) },
	chatstate.ReorderQueue: func(p *pass, s subject) { p.cutIn(s.message) },
	chatstate.ClearQueue:   func(p *pass, _ subject) { p.clearQueue() },
	chatstate.TruncateFrom: func(p *pass, _ subject) { p.truncateFrom() },
	chatstate.AppendPartial: func(p *pass, s subject) {
		if s.result != nil {
			p.appendStep(s.result)
		}
	},
	chatstate.WriteClearBoundary: func(p *pass, _ subject) {
		p.beginContext(p.status().History.Length)
		p.status().Context = nil
	},
	chatstate.RemoveQueued: func(p *pass, s subject) {
		named := func(q v1alpha1.QueuedMessage) bool { return q.Name == s.message }
		p.status().Queue = slices.DeleteFunc(p.status().Queue, named)
	},
	chatstate.AppendMessage: func(p *pass, s subject) { p.appendUser(s.message) },
	chatstate.PromoteHead:   func(p *pass, _ subject) { p.promoteHead() },
	chatstate.AppendStep:    func(p *pass, s subject) { p.appendStep(s.result) },
	chatstate.BumpHistory:   func(p *pass, _ subject) { p.status().History.Version++ },
	chatstate.ResetAttempt: func(p *pass, _ subject) {
		p.status().Generation, p.status().Retry, p.plan.NeedsPod = nil, nil, false
		switch p.held {
		case chatstate.RetryNotDue, chatstate.SubChatsAtWork, chatstate.TargetNotFound: // That held a step that is no more.
			p.held = ""
		}
	},
	chatstate.SetRetry:               func(p *pass, s subject) { p.status().Retry, p.status().Generation = s.retry, nil },
	chatstate.SetCompaction:          func(p *pass, s subject) { p.setCompaction(s.compaction) },
	chatstate.NextAttempt:            func(p *pass, s subject) { p.nextAttempt(s.action) },
	chatstate.SetError:               func(p *pass, s subject) { p.setError(s.err) },
	chatstate.ClearError:             func(p *pass, _ subject) { p.clearError() },
	chatstate.AnswerOutstandingCalls: func(p *pass, _ subject) { p.answerOutstanding() },
	chatstate.AppendResults:          func(p *pass, s subject) { p.appendResults(s.results) },
	chatstate.SetDeadline:            func(p *pass, _ subject) { p.setDeadline() },
	chatstate.DiscardPartial:         func(*pass, subject) {},
	chatstate.ClearCompaction:        func(p *pass, s subject) { p.clearCompaction(s) },
	chatstate.ClearDeadline:          func(p *pass, _ subject) { p.status().RequiresAction = nil },
}

func (p *pass) carryOut(effect chatstate.Effect, s subject) error {
	change, ok := effects[effect]
	if !ok {
		return fmt.Errorf("no way to carry out the effect %s", effect)
	}
	change(p, s)
	return nil
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
	if st.Turn != nil && st.Turn.Result == "" {
		st.Turn.Result = v1alpha1.TurnFailed
	}
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
		p.plan.Ended = append(p.plan.Ended, st.Turn)
		if st.Turn.Result == "" { // Its calls were given up for this message.
			st.Turn.Result = v1alpha1.TurnInterrupted
		}
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
}

// givenUpBefore is why calls of the reply before the message have no result. An edited message knows it from its first commit.
func (p *pass) givenUpBefore(message string) v1alpha1.CallsGivenUp {
	if e := p.facts.Edited; e != nil && e.Name == message && p.event == chatstate.EditMessage {
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
	status.MarkTruncated(st, result.Name, g.Truncated, p.facts.Now)
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
