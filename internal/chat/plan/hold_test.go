// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// hold makes people hold the messages, queued or open, for so long from now on.
func (w *world) hold(d time.Duration, names ...string) *world {
	until := w.now.Add(d)
	w.facts = func(f *Facts) {
		for _, messages := range [][]Message{f.Queued, f.Open} {
			for i := range messages {
				if slices.Contains(names, messages[i].Name) {
					messages[i].HoldUntil = until
				}
			}
		}
	}
	return w.pass(nil)
}

// holding is a chat in whose turn b is queued before c, and someone edits b.
func holding(t *testing.T) *world {
	t.Helper()
	return newWorld(t).say("a").say("b", "c").hold(time.Minute, "b")
}

func TestHeldMessageKeepsItsPlaceInTheQueue(t *testing.T) {
	w := holding(t).want("Running v1 a/1 1:GenerateAssistant [b c]")
	if q := w.chat.Status.Queue; q[0].HeldUntil == nil || q[1].HeldUntil != nil || w.last.Again != time.Minute {
		t.Errorf("the queue is %+v, looked at again after %s", q, w.last.Again)
	}
	w.answer(chattest.Says("hi")).want("Running v3 c/3 1:GenerateAssistant [b]")
}

func TestReleasedMessageIsNextInItsPlace(t *testing.T) {
	for name, release := range map[string]func(*world){
		"the edit ends":     func(w *world) { w.hold(0) },
		"the hold expires":  func(w *world) { w.later(time.Minute) },
		"the hold is wrong": func(w *world) { w.hold(MaxHold+time.Second, "b") },
	} {
		t.Run(name, func(t *testing.T) {
			w := holding(t)
			release(w)
			if w.chat.Status.Queue[0].HeldUntil != nil || w.last.Again != 0 {
				t.Errorf("the queue is %+v, looked at again after %s", w.chat.Status.Queue, w.last.Again)
			}
			w.answer(chattest.Says("hi")).want("Running v3 b/3 1:GenerateAssistant [c]")
		})
	}
}

// waitsForEdit is a chat that only waits for b, which someone edits.
func waitsForEdit(t *testing.T) *world {
	t.Helper()
	return newWorld(t).say("a").say("b").hold(time.Minute, "b").answer(chattest.Says("hi"))
}

func TestChatWaitsForTheEditOfItsMessage(t *testing.T) {
	w := waitsForEdit(t).want("Waiting v2 c-1-1/2 - [b]").wantReason(v1beta1.ReasonWaitingForEdit)
	until := metav1.NewTime(w.now.Add(time.Minute))
	wait := w.chat.Status.Wait
	if wait == nil || wait.For != v1beta1.WaitForEdit || !wait.Until.Equal(&until) || w.chat.Status.IdleSince != nil {
		t.Errorf("it waits for %+v, idle since %v", wait, w.chat.Status.IdleSince)
	}
	if w.last.Again != time.Minute || w.last.LongWait != nil {
		t.Errorf("looked at again after %s, with an Event of %+v", w.last.Again, w.last.LongWait)
	}
	w.hold(0).want("Running v3 b/3 1:GenerateAssistant []")
}

func TestWaitingChatWithHeldMessage(t *testing.T) {
	for name, c := range map[string]struct {
		event func(*world)
		want  string
	}{
		"the hold expires":    {func(w *world) { w.later(time.Minute) }, "Running v3 b/3 1:GenerateAssistant []"},
		"a new message comes": {func(w *world) { w.say("c") }, "Running v3 c/3 1:GenerateAssistant [b]"},
		"it is deleted": {func(w *world) { w.pass(func(f *Facts) { f.Queued = nil }) },
			"Waiting v2 c-1-1/2 - []"},
		"an earlier one is edited": {func(w *world) {
			w.pass(func(f *Facts) { f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}} })
		}, "Running v3 a/1 1:GenerateAssistant []"},
		"an earlier one is edited when the hold expires": {func(w *world) {
			w.now = w.now.Add(time.Minute)
			w.pass(func(f *Facts) { f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}} })
		}, "Running v3 a/1 1:GenerateAssistant []"},
		"the chat is archived": {func(w *world) { w.pass(func(f *Facts) { f.Archive = true }) },
			"Waiting v2 c-1-1/2 - []"},
		"the context is cleared": {func(w *world) { w.ask(v1beta1.RequestClear) }, "Waiting v3 c-1-1/2 - [b]"},
		"it is told to interrupt": {func(w *world) { w.pass(func(f *Facts) { f.Queued[0].Interrupts = true }) },
			"Waiting v2 c-1-1/2 - [b]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := waitsForEdit(t)
			c.event(w)
			w.want(c.want)
		})
	}
}

func TestReleasedInterruptingMessageIsAnswered(t *testing.T) {
	w := newWorld(t).say("a").cutIn("b", "c").hold(time.Minute, "b", "c").answer(chattest.Says("hi"))
	w.later(time.Minute).want("Running v3 b/3 1:GenerateAssistant [c]")
}

func TestReleasedMessagesAreQueuedAboveLimit(t *testing.T) {
	w := newWorld(t).say("a").say("b", "c", "d").hold(time.Minute, "b", "c", "d").answer(chattest.Says("hi"))
	w.chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
	w.later(time.Minute).want("Running v3 b/3 1:GenerateAssistant [c d]")
	if len(w.last.Rejected) > 0 {
		t.Errorf("rejected are %+v", w.last.Rejected)
	}
}

func TestMessageReleasedBeforeAnEditStaysQueued(t *testing.T) {
	w := waitsForEdit(t)
	w.now = w.now.Add(time.Minute)
	w.pass(func(f *Facts) {
		f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}}
		f.Truncated = &Truncated{Head: "a", Length: 1}
	}).want("Waiting v3 a/1 - [b]")
	w.pass(nil).want("Running v4 b/2 1:GenerateAssistant []")
}

func TestMessageReleasedWithoutModelLeavesTheQueue(t *testing.T) {
	w := waitsForEdit(t)
	w.facts = missing(v1beta1.ErrorModelConfigNotFound)
	w.pass(nil).want("Waiting v2 c-1-1/2 - []").wantReason("ModelConfigNotFound")
}

func TestHeldMessageStaysQueuedAfterAFailure(t *testing.T) {
	w := newWorld(t).say("a").say("b").hold(time.Minute, "b").
		answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).want("Error v1 a/1 - [b]")
	w.hold(0).want("Error v1 a/1 - [b]")
	w.hold(time.Minute, "b").say("c").want("Running v2 c/2 1:GenerateAssistant [b]")
}

func TestHeldMessageIsPromotedOnceReleased(t *testing.T) {
	w := holding(t)
	promote := func(f *Facts) { f.Queued[0].Interrupts = true }
	w.pass(promote).want("Running v1 a/1 1:GenerateAssistant [b c]")
	w.facts = promote
	w.pass(nil).want("Interrupting v1 a/1 1:GenerateAssistant [b c]")
}

func TestHeldMessagesTakeRoomInTheQueue(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(2))}
	w.say("a").say("b", "c").hold(time.Minute, "b", "c").say("d")
	if got := w.last.Rejected; len(got) != 1 || got[0].Reason != v1beta1.ReasonQueueFull {
		t.Errorf("rejected are %+v", got)
	}
}

func TestHeldOpenMessageIsNotStarted(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	until := w.now.Add(time.Minute)
	held := func(f *Facts) { f.Open = []Message{{Name: "b", HoldUntil: until}, {Name: "c"}} }
	w.pass(func(f *Facts) { held(f); f.Open = f.Open[:1] }).want("Waiting v2 c-1-1/2 - []").
		wantReason(v1beta1.ReasonWaitingForEdit)
	w.pass(held).want("Running v3 c/3 1:GenerateAssistant []")
}
