// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/machine"
)

// Transition is one step of the state machine, and what it did as far as that is measured.
type Transition struct {
	Event    machine.Event
	From, To machine.State
	// Began is the turn that began; nil if none did.
	Began *v1beta1.TurnStatus
	// Ended is the turn that ended; nil if none did.
	Ended *TurnEnd
	// Attempt is the attempt that ended; nil if none did. One that began in the same pass was never made, and is none.
	Attempt *AttemptEnd
	// ClientCalls are the calls that waited for a client, if they do so no more.
	ClientCalls *ClientCalls
}

// TurnEnd is a turn that has ended.
type TurnEnd struct {
	// Turn as it ended. Its Result is empty for one that an edit or a deletion cut off.
	Turn *v1beta1.TurnStatus
	// Reason of the error that it failed with; empty if it did not fail.
	Reason v1beta1.ErrorReason
}

// AttemptEnd is an attempt that has ended.
type AttemptEnd struct {
	Action v1beta1.GenerationAction
	// Outcome as its result says; empty for an attempt whose result is no longer awaited.
	Outcome v1beta1.GenerationOutcome
	// Reason of the error that it failed with.
	Reason v1beta1.ErrorReason
	// Provider and Model that it asked, as far as its result says.
	Provider, Model string
	// Committed is true when its result has become part of the history, Retried when it is made again after an error.
	Committed, Retried bool
	// Assigned is when it was given to a pod, Finished when its result was there.
	Assigned, Finished time.Time
}

// ClientCalls are tool calls that waited for a client.
type ClientCalls struct {
	Number int
	// Answered is true when results have come for them.
	Answered bool
}

// noteAttemptEnd says of the attempt that was under way when the pass began that this transition has ended it, if it
// has.
func noteAttemptEnd(p *pass, s subject) {
	if p.underWay == nil || p.status().Generation == p.underWay {
		return
	}
	p.firing.Attempt = s.attempt
	if s.attempt == nil {
		p.firing.Attempt = endOfAttempt(p, nil)
	}
	p.underWay = nil
}

// endOfAttempt is how the attempt under way ended if the result is what it gave; nil: it gave none.
func endOfAttempt(p *pass, result *v1beta1.ChatMessage) *AttemptEnd {
	if p.underWay == nil {
		return nil
	}
	end := &AttemptEnd{Action: p.underWay.Action, Assigned: p.underWay.StartedAt.Time}
	if result == nil {
		return end
	}
	g := result.Spec.Generation
	end.Outcome, end.Finished = g.Outcome, g.FinishedAt.Time
	if g.Model != nil {
		end.Provider, end.Model = g.Model.Provider, g.Model.Name
	}
	if g.Error != nil {
		end.Reason, end.Provider = g.Error.Reason, g.Error.Provider
	}
	return end
}

// committedEnd is the end of an attempt whose result becomes part of the history.
func committedEnd(p *pass, result *v1beta1.ChatMessage) *AttemptEnd {
	end := endOfAttempt(p, result)
	end.Committed = true
	return end
}

// interruptedEnd is the end of an attempt that was told to stop; nil: it gave no result in time, or there was none.
func interruptedEnd(p *pass, result *v1beta1.ChatMessage) *AttemptEnd {
	end := endOfAttempt(p, result)
	if end != nil && result != nil {
		end.Committed = hasOutput(result)
	}
	return end
}

// lostEnd is the end of an attempt that has no result and will have none, or whose pod says that it lost it.
func lostEnd(p *pass) *AttemptEnd {
	if attempts.AnswersCurrentAttempt(p.chat, p.status(), p.facts.Result) {
		return endOfAttempt(p, p.facts.Result)
	}
	end := endOfAttempt(p, nil)
	end.Outcome = v1beta1.OutcomeLost
	return end
}

func clientCalls(required *v1beta1.RequiresActionStatus) (n int) {
	for i := range required.ToolCalls {
		if required.ToolCalls[i].Kind == v1beta1.RequiresClient {
			n++
		}
	}
	return n
}
