// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import "testing"

// belongs says for an effect on which edges it is done, and so that it is done on no other.
var belongs = map[Effect]func(r Rule, e Edge) bool{
	AppendMessage: func(r Rule, e Edge) bool {
		return r.Event == Create || r.Event == EditMessage || sends(r) && e.From == Waiting
	},
	EnqueueMessage: func(r Rule, e Edge) bool {
		return sends(r) && e.From == Error || r.Event == SendMessageQueue && busy(e.From)
	},
	EnqueueCutIn:  func(r Rule, e Edge) bool { return r.Event == SendMessageInterrupt && busy(e.From) },
	RemoveQueued:  func(r Rule, _ Edge) bool { return r.Event == DeleteQueued },
	ReorderQueue:  func(r Rule, _ Edge) bool { return r.Event == PromoteQueued },
	ClearQueue:    func(r Rule, e Edge) bool { return r.Event == EditMessage && e.From != Waiting },
	TruncateFrom:  func(r Rule, _ Edge) bool { return r.Event == EditMessage || r.Event == DeleteMessage },
	TakeHistory:   func(r Rule, _ Edge) bool { return r.Event == Fork },
	AppendPartial: func(r Rule, _ Edge) bool { return r.Event == FinishInterruption },
	AppendStep:    func(r Rule, _ Edge) bool { return r.Event == CommitStep },
	AppendResults: func(r Rule, _ Edge) bool { return r.Event == CompleteRequiresAction },
	BeginContext:  func(r Rule, _ Edge) bool { return r.Event == ClearContext },
	CancelCalls: func(r Rule, e Edge) bool {
		cancels := awaiting(e.From) && !awaiting(e.To) && r.Event != CompleteRequiresAction && r.Event != DeleteMessage
		begins := r.Event != Create && has(r, AppendMessage, PromoteHead)
		return cancels || begins || has(r, AppendPartial, BeginContext) || r.Event == ReconcileInvalid
	},
	SetRetry:      func(r Rule, _ Edge) bool { return r.Event == RecordRetry || r.Event == AttemptLost },
	SetCompaction: func(r Rule, _ Edge) bool { return r.Event == RequestCompaction || r.Event == ContextTooLong },
	BumpHistory: func(r Rule, _ Edge) bool {
		return has(r, TruncateFrom, TakeHistory, CancelCalls, AppendMessage, AppendStep, AppendResults, SetCompaction)
	},
}

func busy(s State) bool { return working(s) || awaiting(s) }

func TestEffectsOccurOnlyOnTheirTransitions(t *testing.T) {
	for effect, wanted := range belongs {
		for _, r := range table {
			for _, e := range r.Edges {
				if has(r, effect) != wanted(r, e) {
					t.Errorf("%s: %s is done: %v", label(r, e), effect, has(r, effect))
				}
			}
		}
	}
}
