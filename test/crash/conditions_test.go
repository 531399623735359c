// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"

	"parley.dev/parley/api/v1beta1"
)

// condition is something to wait for.
type condition struct {
	what  string
	holds func(*snapshot) bool
}

// awaits waits for the condition.
func awaits(c condition) step {
	return func(ctx context.Context, w *world) error { return w.await(ctx, c.what, c.holds) }
}

// version means that the history has the version.
func version(of int64) condition {
	return condition{fmt.Sprintf("the history has version %d", of), func(s *snapshot) bool {
		return s.chat != nil && s.chat.Status.History.Version == of
	}}
}

// contextBegins means that the model sees nothing before this index.
func contextBegins(at int64) condition {
	return condition{fmt.Sprintf("the context begins at %d", at), func(s *snapshot) bool {
		return s.chat != nil && s.chat.Status.History.ContextStart == at
	}}
}

// contextAskedFor means that the chat has taken a request to read the context of its workspace again.
var contextAskedFor = condition{"the context is asked for again", func(s *snapshot) bool {
	return s.chat != nil && s.chat.Status.Internal.ContextRefreshedVersion > 0
}}

// summary means that the chat says this of its turn.
func summary(says string) condition {
	return condition{"the turn is summarised as " + says, func(s *snapshot) bool {
		return s.chat != nil && s.chat.Status.Turn != nil && s.chat.Status.Turn.Summary == says
	}}
}

// gone means that neither the chat nor any message is there.
func gone() condition { return condition{"all is gone", nothingLeft} }

// observed means that the status is about the chat's latest spec.
func observed() condition {
	return condition{"the spec is observed", func(s *snapshot) bool {
		return s.chat != nil && s.chat.Status.ObservedGeneration == s.chat.Generation
	}}
}

// anAttempt means that a generation pod has work.
func anAttempt() condition {
	return condition{"an attempt is under way",
		func(s *snapshot) bool { return s.chat != nil && s.chat.Status.Generation != nil }}
}

// attemptNumber means that the attempt under way has the number.
func attemptNumber(n int32) condition {
	return condition{fmt.Sprintf("attempt %d is under way", n), func(s *snapshot) bool {
		return s.chat != nil && s.chat.Status.Generation != nil && s.chat.Status.Generation.Attempt == n
	}}
}

// phase means that the chat has the phase.
func phase(p v1beta1.ChatPhase) condition {
	return condition{"the chat is " + string(p),
		func(s *snapshot) bool { return s.chat != nil && s.chat.Status.Phase == p }}
}

// queue means that the chat's queue holds these messages.
func queue(names ...string) condition {
	return condition{fmt.Sprintf("the queue is %v", names), func(s *snapshot) bool {
		if s.chat == nil || len(s.chat.Status.Queue) != len(names) {
			return false
		}
		for i, name := range names {
			if s.chat.Status.Queue[i].Name != name {
				return false
			}
		}
		return true
	}}
}

// chatSays means that the chat's condition Ready has the reason.
func chatSays(of v1beta1.ConditionReason) condition {
	return condition{"the chat says " + string(of), func(s *snapshot) bool {
		return s.chat != nil && ready(s.chat.Status.Conditions).Reason == string(of)
	}}
}

// reason means that a User message's condition Ready has the reason.
func reason(name string, of v1beta1.ConditionReason) condition {
	return condition{"message " + name + " says " + string(of), func(s *snapshot) bool {
		m := s.message(name)
		return m != nil && ready(m.Status.Conditions).Reason == string(of)
	}}
}

// state means that a User message has the state.
func state(name string, of v1beta1.MessageState) condition {
	return condition{"message " + name + " is " + string(of), func(s *snapshot) bool {
		m := s.message(name)
		return m != nil && m.Status.State == of
	}}
}

// planApproved means that the turn has an approved plan, or none.
func planApproved(want bool) condition {
	return condition{fmt.Sprintf("that a plan is approved is %t", want), func(s *snapshot) bool {
		return s.chat != nil && s.chat.Status.Turn != nil && s.chat.Status.Turn.PlanApproved == want
	}}
}
