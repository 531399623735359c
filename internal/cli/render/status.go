// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
)

// retry tells that an attempt failed, why, and when the next one begins.
func (p *Printer) retry(r *stream.Retry) {
	why := string(r.Reason)
	if r.Message != "" {
		why += ": " + r.Message
	}
	p.Note("%s; attempt %d failed, the next one begins at %s", why, r.Attempt, clock(r.At.Time))
}

// standing tells what the chat waits for, and what its replies are made without, each when it changes. Calls that wait
// and retries have events of their own. While a reply comes, a wait for its pod is over: the status only lags behind.
func (p *Printer) standing(now *stream.Status) {
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

// whyGivenUp is what is shown of tool calls that have no result.
var whyGivenUp = map[v1alpha1.CallsGivenUp]string{
	v1alpha1.CallsCancelled:   "a person cancelled them",
	v1alpha1.CallsInterrupted: "the turn was interrupted",
	v1alpha1.CallsTimedOut:    "they were not answered in time",
	v1alpha1.CallsFailed:      "an error ended the turn",
	v1alpha1.CallsEdited:      "the conversation was changed",
}

// gaveUp shows once why the calls of the newest reply have no result:
// the status tells it first, and then what follows the reply.
func (p *Printer) gaveUp(why v1alpha1.CallsGivenUp) {
	if why != "" && why != p.givenUp {
		if said, known := whyGivenUp[why]; known {
			p.Note("tool calls were given up: %s", said)
		} else {
			p.Note("tool calls were given up: %q", string(why))
		}
	}
	p.givenUp = why
}
