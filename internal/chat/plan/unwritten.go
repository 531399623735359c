// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/machine"
)

// unwritten reports whether the chat's turn began in this pass, was taken up again in it, or took a client's results. A
// turn in whose place another one comes is told to its messages before the chat's status is written. Were it one that
// no status has said, a crash in between would leave messages that say they are committed and are in no history.
func (p turn) unwritten() bool {
	was, is := recordOf(&p.chat.Status), recordOf(p.status())
	return is.TurnStatus != nil &&
		(was.TurnStatus == nil || !sameTurn(was, is) || resultsOf(is.Internal.Results) != resultsOf(was.Internal.Results))
}

// resultsOf names the message of a client's results; empty if there is none.
func resultsOf(place *v1alpha1.MessagePlace) string {
	if place == nil {
		return ""
	}
	return place.Message
}

// putOff leaves to the next pass what may put another turn in the place of an unwritten one. Until it is known whether
// that stops the turn at once, no attempt at it begins.
func (p *pass) putOff() {
	p.plan.Unfinished = true
	if !p.begins() {
		return
	}
	setAttempt(p.status(), attemptRecord{})
	last := len(p.plan.Transitions) - 1
	if p.plan.Transitions[last].Event == machine.RecordAttempt {
		p.plan.Transitions = slices.Delete(p.plan.Transitions, last, last+1)
	}
}
