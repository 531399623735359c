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
	"parley.dev/parley/internal/status"
)

// subject is what an event is about.
type subject struct {
	message string
	result  *v1alpha1.ChatMessage
	action  v1alpha1.GenerationAction
	err     *v1alpha1.GenerationError
}

func (p *pass) state() chatstate.State {
	st := p.status()
	if st.History.Version == 0 {
		return chatstate.None
	}
	return chatstate.StateOf(chatstate.Phase(st.Phase), len(st.Queue), false)
}

// fire asks the state machine for the transition and carries out its effects on the status.
func (p *pass) fire(event chatstate.Event, s subject) error {
	st := p.status()
	transition, err := chatstate.Next(p.state(), event, chatstate.Facts{
		QueueLen:     len(st.Queue),
		QueueCap:     int(p.chat.Spec.MaxQueueOrDefault()),
		FirstMessage: s.message != "",
		Target:       p.targetOf(s.message),
	})
	if err != nil {
		return fmt.Errorf("firing %s: %w", event, err)
	}
	for _, effect := range transition.Effects {
		if err := p.carryOut(effect, s); err != nil {
			return err
		}
	}
	st.Phase = v1alpha1.ChatPhase(transition.To.Phase)
	return nil
}

func (p *pass) targetOf(message string) chatstate.Target {
	queued := func(q v1alpha1.QueuedMessage) bool { return q.Name == message }
	if slices.ContainsFunc(p.status().Queue, queued) {
		return chatstate.TargetQueued
	}
	return chatstate.TargetMissing
}

func (p *pass) carryOut(effect chatstate.Effect, s subject) error {
	st := p.status()
	switch effect {
	case chatstate.EnqueueMessage:
		st.Queue = append(st.Queue, v1alpha1.QueuedMessage{Name: s.message})
	case chatstate.RemoveQueued:
		st.Queue = slices.DeleteFunc(st.Queue, func(q v1alpha1.QueuedMessage) bool { return q.Name == s.message })
	case chatstate.AppendMessage:
		p.appendUser(s.message)
	case chatstate.PromoteHead:
		next := st.Queue[0].Name
		st.Queue = slices.Delete(st.Queue, 0, 1)
		p.appendUser(next)
	case chatstate.AppendStep:
		p.appendStep(s.result)
	case chatstate.BumpHistory:
		st.History.Version++
	case chatstate.ResetAttempt:
		st.Generation = nil
		p.plan.NeedsPod = false
	case chatstate.NextAttempt:
		p.nextAttempt(s.action)
	case chatstate.SetError:
		st.LastError = &v1alpha1.LastError{GenerationError: *s.err, Time: metav1.NewTime(p.facts.Now)}
		st.Turn.Result = v1alpha1.TurnFailed
	case chatstate.ClearError:
		p.plan.PodAfter = podAfter(st.LastError)
		st.LastError = nil
	case chatstate.AnswerOutstandingCalls, chatstate.ClearCompaction:
		// Outstanding calls are answered where the prompt is built; no compaction can have been requested.
	default:
		return fmt.Errorf("no way to carry out the effect %s", effect)
	}
	return nil
}

// appendUser makes the message the head and begins a turn with it.
func (p *pass) appendUser(message string) {
	st := p.status()
	p.plan.Ended = p.chat.Status.Turn
	st.Turn = &v1alpha1.TurnStatus{
		Message: message, Parent: st.History.Head, Index: st.History.Length,
		HistoryVersion: st.History.Version + 1, LastRole: v1alpha1.RoleUser,
	}
	st.History.Head = message
	st.History.Length++
}

// appendStep makes the result the head.
func (p *pass) appendStep(result *v1alpha1.ChatMessage) {
	st, g := p.status(), result.Spec.Generation
	st.History.Head = result.Name
	st.History.Length++
	st.Turn.LastRole = result.Spec.Role
	st.Turn.PendingCalls = g.PendingCalls
	if g.Usage != nil {
		st.Usage = st.Usage.Add(*g.Usage)
	}
	if result.Spec.Role == v1alpha1.RoleAssistant {
		st.Turn.Steps++
		st.LastReply = g.Preview
	}
	status.MarkTruncated(st, result.Name, g.Truncated, p.facts.Now)
	if g.Truncated {
		p.notice(v1alpha1.ReasonReplyTooLarge, "Commit", "Message "+result.Name+" was cut at 1 MiB, the most that one object holds")
	}
}

func (p *pass) nextAttempt(action v1alpha1.GenerationAction) {
	st := p.status()
	attempt := int32(1)
	if st.Generation != nil {
		attempt = st.Generation.Attempt + 1
	} else if previous := p.chat.Status.Generation; previous != nil {
		p.plan.PreferPod = previous.Pod
	}
	st.Generation = &v1alpha1.GenerationStatus{
		Attempt: attempt, Action: action,
		ModelConfig: p.facts.Model.Config, StartedAt: metav1.NewMicroTime(p.facts.Now),
	}
	st.Model = p.facts.Model.Name
	p.plan.NeedsPod = true
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
