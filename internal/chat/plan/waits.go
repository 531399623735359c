// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// beginWaits notes until when the calls that are to be run next wait for sub-chats. The time of each runs from here on,
// and not from when the model asked: people may have taken theirs to approve it.
func (p turn) beginWaits() {
	t := p.status().Turn
	for i := range t.WaitsFor {
		if w := &t.WaitsFor[i]; w.Deadline == nil && due(t, w) {
			w.Deadline = new(metav1.NewTime(p.facts.Now.Add(time.Duration(w.TimeoutSeconds) * time.Second)))
		}
	}
}

// due reports whether the call is one of those that are to be run next: it awaits nobody, or was approved.
func due(t *v1alpha1.TurnStatus, w *v1alpha1.PendingWait) bool {
	return w.Awaits == "" || slices.ContainsFunc(t.Decisions, func(d v1alpha1.ToolDecision) bool {
		return d.ID == w.ID && d.Decision == v1alpha1.DecisionApprove
	})
}

// subChatsAtWork reports whether a call that is to be run next waits for a sub-chat that is still at work, and may go
// on to. Calls whose attempt was lost have waited before it began.
func (p turn) subChatsAtWork() bool {
	t := p.status().Turn
	if last := p.status().Retry; last != nil && last.LostAttempts > 0 {
		return false
	}
	for i := range t.WaitsFor {
		if w := &t.WaitsFor[i]; w.Deadline != nil && p.facts.Now.Before(w.Deadline.Time) && p.atWork(w.Chat) {
			return true
		}
	}
	return false
}

// atWork reports whether the sub-chat is at work, and asks if that is not known.
func (p turn) atWork(chat string) bool {
	works, known := p.facts.SubChats[chat]
	if !known && !slices.Contains(p.plan.Asks.SubChats, chat) {
		p.plan.Asks.SubChats = append(p.plan.Asks.SubChats, chat)
	}
	return works
}

// pendingWaits are the waits of a reply's calls before any of them has begun.
func pendingWaits(waits []v1alpha1.CallWait) (pending []v1alpha1.PendingWait) {
	for _, w := range waits {
		pending = append(pending, v1alpha1.PendingWait{CallWait: w})
	}
	return pending
}

// waitsLeft are the waits that are left after a batch of calls was answered:
// those of calls that people have yet to approve.
func waitsLeft(t *v1alpha1.TurnStatus) (left []v1alpha1.PendingWait) {
	for _, w := range t.WaitsFor {
		if t.PendingCalls > 0 && w.Awaits != "" {
			left = append(left, w)
		}
	}
	return left
}
