// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
)

// Deadline is how long until the status has to change because of the time alone; zero if it need not.
func Deadline(st *v1beta1.ChatStatus, now time.Time) time.Duration {
	if st.RequiresAction != nil {
		return max(st.RequiresAction.Deadline.Sub(now), time.Nanosecond)
	}
	if st.Retry != nil && st.Retry.At.After(now) { // After that something else holds it, which wakes the chat itself.
		return Sooner(st.Retry.At.Sub(now), referenceWaitEnds(st, now))
	}
	ends := Sooner(Sooner(interruptionEnds(st, now), waitingEnds(st, now)), attemptEnds(st, now))
	return Sooner(ends, referenceWaitEnds(st, now))
}

// replyTime is how long an attempt at a reply or a summary may take: a day. A provider's silence ends a call much
// earlier; this bounds one that never stops sending something.
const replyTime = 24 * time.Hour

// attemptTime is how long an attempt at the action may take, whatever its pod says. A generator that answers its probes
// is trusted to be at work until then: it ends by itself what shows no sign of life, and its probe fails when that does
// not end.
func attemptTime(action v1beta1.GenerationAction) time.Duration {
	if action == v1beta1.ActionExecuteTools {
		return attempts.ToolsTime
	}
	return replyTime
}

// attemptEnds is how long the attempt under way may still take; zero if there is none.
func attemptEnds(st *v1beta1.ChatStatus, now time.Time) time.Duration {
	if st.Generation == nil {
		return 0
	}
	return max(attemptTime(st.Generation.Action)-now.Sub(st.Generation.StartedAt.Time), time.Nanosecond)
}

// Overdue reports whether the attempt under way has taken longer than it may.
func Overdue(st *v1beta1.ChatStatus, now time.Time) bool {
	g := st.Generation
	return g != nil && now.Sub(g.StartedAt.Time) >= attemptTime(g.Action)
}

// interruptionEnds is how long an attempt that was told to stop has to hand over what it has; zero if there is none.
func interruptionEnds(st *v1beta1.ChatStatus, now time.Time) time.Duration {
	if st.Phase != v1beta1.ChatInterrupting || st.Generation == nil || st.Generation.InterruptedAt == nil {
		return 0
	}
	return max(InterruptPatience-now.Sub(st.Generation.InterruptedAt.Time), time.Nanosecond)
}

// Sooner is the shorter of two waits; zero is none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// referenceWaitEnds is how long a turn still waits for a class or a model that does not exist; zero if it waits for
// none.
func referenceWaitEnds(st *v1beta1.ChatStatus, now time.Time) time.Duration {
	w := st.Wait
	if w == nil || w.Until == nil || !slices.Contains(missingReferences, v1beta1.ErrorReason(w.Reason)) {
		return 0
	}
	return max(w.Until.Sub(now), time.Nanosecond)
}

// waitingEnds is how long until the first of the waits for sub-chats is over that hold a chat; zero if there is none.
func waitingEnds(st *v1beta1.ChatStatus, now time.Time) (in time.Duration) {
	if st.Phase != v1beta1.ChatRunning || st.Generation != nil || st.Turn == nil {
		return 0
	}
	for _, w := range st.Turn.WaitingFor {
		if w.Deadline != nil && now.Before(w.Deadline.Time) {
			in = Sooner(in, w.Deadline.Sub(now))
		}
	}
	return in
}
