// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"strconv"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
)

// retry shows why an attempt failed, and when the next one begins.
func (p *Printer) retry(r *stream.Retry) {
	why := string(r.Reason)
	if r.Message != "" {
		why += ": " + r.Message
	}
	p.Note("%s; attempt %d failed, the next one begins at %s", why, r.Attempt, clock(r.At.Time))
}

// showWait shows what the chat waits for, and the warnings, each when it changes. Pending calls and retries have their
// own events. While a reply comes, a wait for its pod is over: the status is only late.
func (p *Printer) showWait(now *stream.Status) {
	words := waitWords(now.Wait)
	streaming := words != "" && now.Wait.For == v1alpha1.WaitForPod && p.Chat.Live.Has(parts.Text, "")
	if words != p.wait && !streaming {
		if p.wait = words; words != "" {
			p.Note("%s", words)
		}
	}
	for _, w := range now.Warnings {
		if !p.warned[w] {
			p.warned[w] = true
			p.Note("%s: %s: %s", w.Type, w.Reason, w.Message)
		}
	}
}

// waitWords describes what the chat waits for; empty if another event does, or if it waits for nothing.
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

// cancelReasons describes why tool calls have no result.
var cancelReasons = map[v1alpha1.CallsGivenUp]string{
	v1alpha1.CallsCancelled:   "a person cancelled them",
	v1alpha1.CallsInterrupted: "the turn was interrupted",
	v1alpha1.CallsTimedOut:    "they were not answered in time",
	v1alpha1.CallsFailed:      "an error ended the turn",
	v1alpha1.CallsEdited:      "the conversation was changed",
}

// showCancelled shows once why the calls of the newest reply have no result. The status has it first, and then the
// message behind the reply.
func (p *Printer) showCancelled(why v1alpha1.CallsGivenUp) {
	if why != "" && why != p.cancelled {
		p.Note("tool calls were given up: %s", cmp.Or(cancelReasons[why], strconv.Quote(string(why))))
	}
	p.cancelled = why
}
