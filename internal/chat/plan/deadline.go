// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// Deadline is how long until the status has to change because of the time alone; zero if it need not.
func Deadline(st *v1alpha1.ChatStatus, now time.Time) time.Duration {
	if st.RequiresAction != nil {
		return max(st.RequiresAction.Deadline.Sub(now), time.Nanosecond)
	}
	if st.Retry != nil && st.Retry.At.After(now) { // After that something else holds it, which wakes the chat itself.
		return st.Retry.At.Sub(now)
	}
	return Sooner(interruptionEnds(st, now), waitingEnds(st, now))
}

// interruptionEnds is how long an attempt that was told to stop has to hand over what it has; zero if there is none.
func interruptionEnds(st *v1alpha1.ChatStatus, now time.Time) time.Duration {
	if st.Phase != v1alpha1.ChatInterrupting || st.Generation == nil || st.Generation.InterruptedAt == nil {
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

// waitingEnds is how long until the first of the waits for sub-chats is over that hold a chat; zero if there is none.
func waitingEnds(st *v1alpha1.ChatStatus, now time.Time) (in time.Duration) {
	if st.Phase != v1alpha1.ChatRunning || st.Generation != nil || st.Turn == nil {
		return 0
	}
	for _, w := range st.Turn.WaitingFor {
		if w.Deadline != nil && now.Before(w.Deadline.Time) {
			in = Sooner(in, w.Deadline.Sub(now))
		}
	}
	return in
}
