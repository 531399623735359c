// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
)

// Turn shows the turn of one message.
type Turn struct {
	Printer *Printer
	// Message is the name of the message.
	Message string
	// First is true for the turn that a chat begins with, and Interrupts for a message that does not wait for the turn
	// under way.
	First, Interrupts bool
	// Ended is true once the turn was shown to its end.
	Ended bool

	chat client.Transcript
}

// Waits describes what the chat waits for, if that is known, and whether that is a person or a client.
func (t *Turn) Waits() (reason string, requiresAction bool) {
	now := t.chat.Status
	if now == nil {
		return "", false
	}
	switch {
	case now.Wait != nil:
		reason = now.Wait.Reason + ": " + now.Wait.Message
	case now.Ready == metav1.ConditionTrue && !t.chat.Turn(t.Message).Begun:
		reason = "the chat has not read the message; is Parley's manager running?"
	}
	return reason, now.Phase == v1beta1.ChatRequiresAction
}

// Event shows an event of the chat, if it is of the turn.
func (t *Turn) Event(e stream.Event) error {
	if t.Printer.JSON {
		if err := t.Printer.Event(e, false); err != nil {
			return err
		}
	}
	t.chat.Outline = true
	updates, err := t.chat.Updates(e)
	for _, u := range updates {
		t.chat.Take(u)
		if err := t.show(u); err != nil || t.Ended {
			return err
		}
	}
	return err
}

// show shows an update. The turn begins with the message itself, and ends before the next User message or with a status
// that names its end: several changes of a chat may come as one, with the reply before the first status that names the
// turn.
func (t *Turn) show(u client.Update) error {
	now := t.chat.Turn(t.Message)
	switch u := u.(type) {
	case client.Deleted:
		return cli.NotFoundError("the chat was deleted")
	case *stream.Status:
		if t.needsPerson(u, &now) {
			return cli.NotReadyError{Reason: u.Reason, Message: u.Message}
		}
		if !t.Printer.JSON && (u.Turn == t.Message || !now.Begun && !t.Interrupts) {
			t.Printer.showWait(u)
		}
	}
	switch t.Ended = now.Ended; {
	case t.Ended, t.Printer.JSON:
	case now.Begun, t.delays(u):
		t.Printer.Show(u, false)
	}
	return nil
}

// needsPerson reports whether the turn cannot begin, or cannot continue, until a person acts. Before the turn, a status
// whose reason is not that of a wait may be that of a turn that failed.
func (t *Turn) needsPerson(s *stream.Status, now *client.Turn) bool {
	if now.Begun {
		return now.Held
	}
	return s.Ready == metav1.ConditionFalse && (t.First || s.Wait != nil && s.Wait.Reason == s.Reason) ||
		s.Wait != nil && s.Wait.For == v1beta1.WaitForUnarchive
}

// delays reports whether the update is about a wait that delays the message in the queue, too.
func (t *Turn) delays(u client.Update) bool {
	switch u.(type) {
	case *stream.RequiresAction, *stream.Retry:
		return !t.Interrupts
	}
	return false
}

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
	words := waitWords(now)
	streaming := words != "" && now.Wait.For == v1beta1.WaitForPod && p.Chat.Live.Has(parts.Text, "")
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

// waitWords describes the wait, unless it is shown otherwise. One that no one has to end yet, for something that a chat
// names and that may still come, ends soon or becomes the error of the turn.
func waitWords(now *stream.Status) string {
	w := now.Wait
	if w == nil {
		return ""
	}
	switch w.For {
	case v1beta1.WaitForApproval, v1beta1.WaitForAnswer, v1beta1.WaitForClientResult, v1beta1.WaitForRetry:
		return ""
	case v1beta1.WaitForModelConfig, v1beta1.WaitForChatClass, v1beta1.WaitForChat:
		if now.Ready == metav1.ConditionUnknown && w.Until == nil {
			return ""
		}
	}
	return w.Reason + ": " + w.Message
}

// cancelReasons describes why tool calls have no result.
var cancelReasons = map[v1beta1.CallsCanceledReason]string{
	v1beta1.CallsCanceled:    "a person cancelled them",
	v1beta1.CallsInterrupted: "the turn was interrupted",
	v1beta1.CallsTimedOut:    "they were not answered in time",
	v1beta1.CallsFailed:      "an error ended the turn",
	v1beta1.CallsEdited:      "the conversation was changed",
}

// showCancelled shows once why the calls of the newest reply have no result. The status has it first, and then the
// message behind the reply.
func (p *Printer) showCancelled(why v1beta1.CallsCanceledReason) {
	if why != "" && why != p.cancelled {
		p.Note("tool calls were given up: %s", cmp.Or(cancelReasons[why], strconv.Quote(string(why))))
	}
	p.cancelled = why
}
