// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// wantGivenUp checks why the calls of the newest reply were given up, and why those before the turn's message were.
func (w *world) wantGivenUp(now, before v1beta1.CallsCanceledReason) *world {
	w.t.Helper()
	if got := recordOf(&w.chat.Status); got.CallsCanceledReason != now ||
		got.Internal.CallsCanceledReasonBefore != before {
		w.t.Errorf("calls were given up because of %q, and before the turn because of %q; want %q and %q",
			got.CallsCanceledReason,
			got.Internal.CallsCanceledReasonBefore, now, before)
	}
	return w
}

func waitsForApproval(t *testing.T) *world {
	t.Helper()
	return waits(t, pending(v1beta1.RequiresApproval, "1")...)
}

func TestNextStepReceivesReasonOfAbandonedCalls(t *testing.T) {
	w := waitsForApproval(t).wantGivenUp("", "")
	w.pass(func(f *Facts) { f.Now = now.Add(v1beta1.DefaultApprovalDeadline + time.Second) }).
		wantGivenUp(v1beta1.CallsTimedOut, "").answer(chattest.CallsRequiring(v1beta1.RequiresApproval, "1")).
		wantGivenUp("", "")
}

func TestNextMessageRecordsReasonOfAbandonedCalls(t *testing.T) {
	interruptedTurn := func(t *testing.T) *world {
		t.Helper()
		return newWorld(t).say("a").ask(v1beta1.RequestInterrupt).
			answer(chattest.Calls("1"), chattest.Interrupted()).wantGivenUp(v1beta1.CallsInterrupted, "")
	}
	for name, c := range map[string]struct {
		ended *world
		want  v1beta1.CallsCanceledReason
	}{
		"interrupted": {interruptedTurn(t), v1beta1.CallsInterrupted},
		"failed": {newWorld(t).say("a").answer(chattest.Calls("1")).answer(chattest.Fails(v1beta1.ErrorRequestRejected)),
			v1beta1.CallsFailed},
		"told to cut in": {waitsForApproval(t).say("b").pass(func(*Facts) {}), ""},
	} {
		if name == "told to cut in" {
			c.ended.pass(func(f *Facts) { f.Queued[0].Interrupts = true }).wantGivenUp("", v1beta1.CallsInterrupted)
			continue
		}
		c.ended.say("b").wantGivenUp("", c.want)
		// The edit of that message is told what its first commit was.
		c.ended.pass(func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "b", ContentHash: "other"}, Commit: c.ended.chat.Status.Internal.Tail[0]}
		}).wantGivenUp("", c.want)
	}
}

func TestTruncatedHistoryKeepsReasonOfAbandonedCalls(t *testing.T) {
	w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt).answer(chattest.Calls("1"), chattest.Interrupted()).say("b")
	before, reply := question("a"), chattest.Answer(w.chat, chattest.Calls("1"), chattest.Interrupted())
	w.pass(func(f *Facts) { f.Truncated = rest([]*v1beta1.ChatMessage{before, reply}) }).
		wantGivenUp(v1beta1.CallsInterrupted, "")
	w.say("c").wantGivenUp("", v1beta1.CallsInterrupted)
}

func TestResumedTurnKeepsItsCommitsVersion(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Calls("1"))
	before, calling := question("a"), chattest.Answer(w.chat, chattest.Calls("1"))
	before.Status.HistoryVersion = 1
	w.answer(chattest.Results("1")).answer(chattest.Says("hi"))
	w.pass(func(f *Facts) { f.Truncated = rest([]*v1beta1.ChatMessage{before, calling}) })
	if got := w.chat.Status; got.Turn.HistoryVersion != 1 || got.Internal.Turn.ResumedVersion != got.History.Version {
		t.Errorf("the turn is %+v at version %d", got.Turn, got.History.Version)
	}
}
