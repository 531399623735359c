// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
)

// retry tells that an attempt failed, why, and when the next one begins.
func (p *printer) retry(r *stream.Retry) {
	why := string(r.Reason)
	if r.Message != "" {
		why += ": " + r.Message
	}
	p.note("%s; attempt %d failed, the next one begins at %s", why, r.Attempt, clock(r.At.Time))
}

// clock is a time of today, or one with its date.
func clock(at time.Time) string {
	if at = at.Local(); at.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// standing tells what the chat waits for, and what its replies are made without, each when it changes. Calls that wait
// and retries have events of their own. While a reply comes, a wait for its pod is over: the status only lags behind.
func (p *printer) standing(now *stream.Status) {
	words := waitWords(now.Wait)
	streaming := words != "" && now.Wait.For == v1alpha1.WaitForPod && p.chat.Live.Has(parts.Text, "")
	if words != p.wait && !streaming {
		if p.wait = words; words != "" {
			p.note("%s", words)
		}
	}
	for _, w := range now.Warnings {
		if !p.warned[w] {
			p.warned[w] = true
			p.note("%s: %s: %s", w.Type, w.Reason, w.Message)
		}
	}
}

// waitWords say what the chat waits for; empty if another event does, or if it waits for nothing.
func waitWords(w *v1alpha1.ChatWait) string {
	if w == nil {
		return ""
	}
	switch w.For {
	case v1alpha1.WaitForApproval, v1alpha1.WaitForAnswer, v1alpha1.WaitForClientResult, v1alpha1.WaitForRetry:
		return ""
	}
	return w.Reason + ": " + w.Message
}
