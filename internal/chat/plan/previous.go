// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1alpha1"
)

// leave takes leave of a turn that another one replaces. What its message has yet to say, the status keeps until it
// has: so the next turn need not wait for that write. It keeps one turn; what it cannot keep is said before the status
// is written: of the turn before that one, and why a turn failed, which lastError says no longer.
func (p turn) leave(ended TurnRecord) {
	in := &p.status().Internal
	if before := previousOf(p.status()); before.TurnStatus != nil && !p.facts.reported(before) {
		p.plan.Replaced = append(p.plan.Replaced, before)
	}
	in.PreviousTurn = nil
	switch {
	case p.facts.reported(ended):
	case ended.Result == v1alpha1.TurnFailed:
		p.plan.Replaced = append(p.plan.Replaced, ended)
	default:
		in.PreviousTurn = &v1alpha1.PreviousTurnStatus{
			Message: ended.Message, Parent: ended.Parent, Index: ended.Index, HistoryVersion: ended.HistoryVersion,
			ResumedVersion: ended.Internal.ResumedVersion, ContentHash: ended.Internal.ContentHash,
			CallsGivenUpBefore: ended.Internal.CallsGivenUpBefore, Result: ended.Result, StoppedBy: ended.StoppedBy,
		}
	}
}

// forgetReported drops what is kept of the turn before once its message says it. That alone is worth no write.
func (p turn) forgetReported() {
	if before := previousOf(p.status()); before.TurnStatus != nil && len(p.plan.Transitions) > 0 &&
		p.facts.reported(before) {
		p.status().Internal.PreviousTurn = nil
	}
}

// dropPrevious drops what is kept of the turn before if a cut has left nothing of it, or made it the newest again. Its
// message may not say yet that it was part of the history, and would be taken for a new one.
func (p cut) dropPrevious(from int64) {
	before := previousOf(p.status())
	if before.TurnStatus == nil {
		return
	}
	if before.Index >= from {
		p.plan.Superseded = append(p.plan.Superseded, before.Message)
	}
	if now := p.status().Turn; before.Index >= p.status().History.Length || now != nil && now.Message == before.Message {
		p.status().Internal.PreviousTurn = nil
	}
}

// reported reports whether the message of a turn says how it ended.
func (f *Facts) reported(t TurnRecord) bool { return f.Reported[t.Message] == t.version() }
