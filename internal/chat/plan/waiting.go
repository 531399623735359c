// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// beginWaiting notes until when the calls that are to be run next wait for sub-chats. The time of each runs from here
// on, and not from when the model asked: people may have taken theirs to approve it.
func beginWaiting(p *pass) {
	t, in := p.status().Turn, &p.status().Internal.Turn
	for i := range t.WaitingFor {
		if w := &t.WaitingFor[i]; w.Deadline == nil && isRunnable(in, w) {
			w.Deadline = new(metav1.NewTime(p.facts.Now.Add(time.Duration(w.TimeoutSeconds) * time.Second)))
		}
	}
}

// isRunnable reports whether the call is one of those that are to be run next: it requires no action, or was approved.
func isRunnable(in *v1beta1.TurnInternalStatus, w *v1beta1.WaitingCallStatus) bool {
	return w.RequiresAction == "" || slices.ContainsFunc(in.Decisions, func(d v1beta1.ToolDecision) bool {
		return d.ID == w.ID && d.Decision == v1beta1.DecisionApprove
	})
}

// subChatsAtWork reports whether a call that is to be run next waits for a sub-chat that is still at work, and may go
// on to. Calls of which an attempt was lost or has failed have waited before it began.
func subChatsAtWork(p *pass) bool {
	t := p.status().Turn
	if p.status().Retry != nil {
		return false
	}
	for i := range t.WaitingFor {
		if w := &t.WaitingFor[i]; w.Deadline != nil && p.facts.Now.Before(w.Deadline.Time) && subChatAtWork(p, w.Chat) {
			return true
		}
	}
	return false
}

// subChatAtWork reports whether the sub-chat is at work, and asks if that is not known.
func subChatAtWork(p *pass, chat string) bool {
	works, known := p.facts.SubChats[chat]
	if !known && !slices.Contains(p.plan.Asks.SubChats, chat) {
		p.plan.Asks.SubChats = append(p.plan.Asks.SubChats, chat)
	}
	return works
}

// waitingCalls are a reply's calls that wait for sub-chats, before the time of any of them runs.
func waitingCalls(calls []v1beta1.WaitingCall) (waiting []v1beta1.WaitingCallStatus) {
	for _, c := range calls {
		waiting = append(waiting, v1beta1.WaitingCallStatus{WaitingCall: c})
	}
	return waiting
}

// stillWaiting are the calls that wait for sub-chats after a batch of calls was answered: those that people have yet to
// approve.
func stillWaiting(t *v1beta1.TurnStatus, in *v1beta1.TurnInternalStatus) (left []v1beta1.WaitingCallStatus) {
	for _, w := range t.WaitingFor {
		if in.PendingCalls > 0 && w.RequiresAction != "" {
			left = append(left, w)
		}
	}
	return left
}
