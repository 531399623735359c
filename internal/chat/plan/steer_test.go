// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// ask passes with a request of an annotation.
func (w *world) ask(kind v1beta1.RequestKind) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) { f.Requests = []Request{{Kind: kind, Token: "t"}} })
}

func (w *world) requested(outcome v1beta1.RequestOutcome) *world {
	w.t.Helper()
	if all := w.chat.Status.Requests; len(all) != 1 || all[0].Outcome != outcome || all[0].Token != "t" {
		w.t.Errorf("requests are %+v", all)
	}
	return w
}

func TestInterruptionKeepsFenceUntilResult(t *testing.T) {
	for name, c := range map[string]struct {
		said []chattest.Reply
		want string
	}{
		"a partial reply": {[]chattest.Reply{chattest.Says("Half a"), chattest.Interrupted()},
			"Waiting v2 c-1-1/2 - []"},
		"nothing had been said": {[]chattest.Reply{chattest.Interrupted()}, "Waiting v2 a/1 - []"},
		"it was done just then": {[]chattest.Reply{chattest.Says("hi")}, "Waiting v2 c-1-1/2 - []"},
		"it failed just then": {[]chattest.Reply{chattest.Fails(v1beta1.ErrorAuthenticationFailed)},
			"Waiting v2 a/1 - []"},
		"the pod was restarted": {[]chattest.Reply{chattest.Lost()}, "Waiting v2 a/1 - []"},
		"a call that has no result": {[]chattest.Reply{chattest.Calls("1"), chattest.Interrupted()},
			"Waiting v2 c-1-1/2 - []"},
		"a step that calls, complete": {[]chattest.Reply{chattest.Calls("1", "2")}, "Waiting v2 c-1-1/2 - []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt).requested(v1beta1.RequestDone)
			w.want("Interrupting v1 a/1 1:GenerateAssistant []")
			if w.chat.Status.Generation.InterruptedAt == nil {
				t.Error("the pod is not told")
			}
			w.answer(c.said...).want(c.want)
			if got := w.chat.Status.Turn.Result; got != v1beta1.TurnInterrupted {
				t.Errorf("the turn ended as %s", got)
			}
		})
	}
}

func TestInterruptionTimesOutWithoutPodResult(t *testing.T) {
	for name, change := range map[string]func(*world, *Facts){
		"the pod is gone":   func(_ *world, f *Facts) { f.PodLost = true },
		"it does not react": func(_ *world, f *Facts) { f.Now = now.Add(InterruptPatience) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt)
			w.pass(func(f *Facts) { f.Now = now.Add(InterruptPatience - time.Second) }).
				want("Interrupting v1 a/1 1:GenerateAssistant []")
			w.pass(func(f *Facts) { change(w, f) }).want("Waiting v2 a/1 - []")
		})
	}
}

func TestInterruptingMessagesAreQueuedFirstInOrder(t *testing.T) {
	w := newWorld(t).say("a").say("b").cutIn("c").want("Interrupting v1 a/1 1:GenerateAssistant [c b]")
	w.cutIn("d").want("Interrupting v1 a/1 1:GenerateAssistant [c d b]")
	w.pass(func(f *Facts) { f.Queued[2].Interrupts = true }).want("Interrupting v1 a/1 1:GenerateAssistant [c d b]")
	if q := w.chat.Status.Queue; !q[2].Interrupts {
		t.Errorf("the queue is %+v", q)
	}
	w.answer(chattest.Says("Half a"), chattest.Interrupted()).want("Running v2 c/3 1:GenerateAssistant [d b]")
	w.wantPrevious("a", v1beta1.TurnInterrupted)
	newWorld(t).cutIn("a").want("Running v1 a/1 1:GenerateAssistant []")
}

func TestTurnsBeginAndEndInOnePass(t *testing.T) {
	for name, c := range map[string]struct {
		world func(w *world) *world
		facts func(*world, *Facts)
		want  string
	}{
		"a message, and one that cuts in": {nil, func(_ *world, f *Facts) {
			f.Open = append(messages(false, "a"), messages(true, "b")...)
		}, "Running v2 b/2 1:GenerateAssistant []"},
		"a queued message whose model is disabled, and another one": {
			func(w *world) *world { return w.say("a").say("b") },
			func(w *world, f *Facts) {
				f.Result, f.Open = chattest.Answer(w.chat, chattest.Says("hi")), messages(false, "c")
				f.Queued[0].ModelConfig, f.Named = "off", map[string]*Model{"off": {Disabled: true}}
			}, "Running v4 c/4 1:GenerateAssistant []"},
		"an edit, and a message that cuts in": {
			func(w *world) *world { return w.say("a").answer(chattest.Says("hi")) },
			func(_ *world, f *Facts) {
				f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}}
				f.Open = messages(true, "b")
			}, "Running v4 b/2 1:GenerateAssistant []"},
		"the end of a turn with a queue, and an interruption": {
			func(w *world) *world { return w.say("a").say("b", "c") },
			func(w *world, f *Facts) {
				f.Result = chattest.Answer(w.chat, chattest.Says("hi"))
				f.Requests = []Request{{Kind: v1beta1.RequestInterrupt, Token: "t"}}
			}, "Running v4 c/4 1:GenerateAssistant []"},
		"a queued message that was told to cut in when the one before it begins": {
			func(w *world) *world { return w.say("a").say("b", "c") },
			func(w *world, f *Facts) {
				f.Result, f.Queued[1].Interrupts = chattest.Answer(w.chat, chattest.Says("hi")), true
			}, "Running v4 c/4 1:GenerateAssistant []"},
		"a client's results, and a message that cuts in": {
			func(w *world) *world { return waits(w.t, pending(v1beta1.RequiresClient, "x")...) },
			func(_ *world, f *Facts) {
				f.Results, f.Open = []*v1beta1.ChatMessage{brought("x")}, messages(true, "b")
			}, "Running v4 b/4 1:GenerateAssistant []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.world != nil {
				w = c.world(w)
			}
			w.pass(func(f *Facts) { c.facts(w, f) }).want(c.want)
		})
	}
}

func TestLostAttemptInterruptedHandsNothingOver(t *testing.T) {
	w := newWorld(t).say("a")
	w.pass(func(f *Facts) {
		f.Suspended, f.Result, f.Open = true, chattest.Answer(w.chat, chattest.Lost()), messages(true, "b")
	}).want("Running v2 b/2 - []")
}

func TestPromotedQueuedMessageInterruptsOnce(t *testing.T) {
	w := newWorld(t).say("a").say("b", "c")
	toldC := func(f *Facts) { f.Queued[1].Interrupts = true }
	w.pass(toldC).want("Interrupting v1 a/1 1:GenerateAssistant [c b]")
	w.answer(chattest.Interrupted()).want("Running v2 c/2 1:GenerateAssistant [b]")
	w = newWorld(t).say("a").say("b").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).want("Error v1 a/1 - [b]")
	w.pass(func(f *Facts) { f.Queued[0].Interrupts = true }).want("Running v2 b/2 1:GenerateAssistant []")
}

func TestWhatCannotBeDoneIsRefusedOnce(t *testing.T) {
	for name, w := range map[string]*world{
		"nothing to interrupt before the start": newWorld(t).ask(v1beta1.RequestInterrupt),
		"nothing to interrupt": newWorld(t).say("a").answer(chattest.Says("hi")).
			ask(v1beta1.RequestInterrupt),
		"nothing to interrupt in an error": newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).
			ask(v1beta1.RequestInterrupt),
		"nothing to clear":       newWorld(t).ask(v1beta1.RequestClear),
		"clearing while at work": newWorld(t).say("a").ask(v1beta1.RequestClear),
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			if w.requested(v1beta1.RequestRefused).chat.Status.Requests[0].Message == "" {
				t.Error("nobody says why")
			}
		})
	}
}

func TestClearStartsNewContextAndKeepsHistory(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).ask(v1beta1.RequestClear).requested(v1beta1.RequestDone).
		want("Waiting v3 c-1-1/2 - []")
	if got := w.chat.Status.History.ContextStart; got != 2 {
		t.Errorf("the context starts at %d", got)
	}
	w.ask(v1beta1.RequestClear).requested(v1beta1.RequestRefused)
}

func TestSuspendedChatFinishesCurrentStepOnly(t *testing.T) {
	held := func(change func(*Facts)) func(*Facts) {
		return func(f *Facts) {
			f.Suspended = true
			if change != nil {
				change(f)
			}
		}
	}
	w := newWorld(t).say("a")
	w.pass(held(func(f *Facts) { f.Result = chattest.Answer(w.chat, chattest.Calls("1")) })).
		want("Running v2 c-1-1/2 - []")
	if ready := meta.FindStatusCondition(w.chat.Status.Conditions,
		v1beta1.ConditionReady); v1beta1.ReasonOf(ready) != v1beta1.ReasonSuspended {
		t.Errorf("Ready is %+v", ready)
	}
	w.pass(held(func(f *Facts) { f.Open = messages(false, "b") })).want("Running v2 c-1-1/2 - [b]")
	w.pass(nil).want("Running v2 c-1-1/2 1:ExecuteTools [b]")

	w = newWorld(t).pass(held(func(f *Facts) { f.Open = messages(false, "a") })).want("Running v1 a/1 - []")
	w.pass(held(func(f *Facts) { f.Requests = []Request{{v1beta1.RequestInterrupt, "t"}} })).want("Waiting v2 a/1 - []")
}

// edit passes with an edit of a committed message.
func (w *world) edit(name, parent string, index int64) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) {
		f.Edited = &Edited{Message: Message{Name: name, ContentHash: "new"},
			Commit: v1beta1.CommittedMessage{Parent: parent, Position: index}}
	})
}

func TestEditRestartsFromEditedMessageInEveryPhase(t *testing.T) {
	for name, before := range map[string]func(*world) *world{
		"Waiting":      func(w *world) *world { return w.answer(chattest.Says("hi")) },
		"Running":      func(w *world) *world { return w },
		"Queue":        func(w *world) *world { return w.say("x", "y") },
		"Interrupting": func(w *world) *world { return w.cutIn("x") },
		"Error": func(w *world) *world {
			return w.say("x").
				answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed))
		},
		"Suspended": func(w *world) *world { return w.pass(func(f *Facts) { f.Suspended = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			w := before(newWorld(t).say("a").answer(chattest.Says("hi")).say("b"))
			version, queue, dropped := w.chat.Status.History.Version, w.chat.Status.Queue, len(w.chat.Status.Internal.Tail)
			w.edit("a", "", 0).want(fmt.Sprintf("Running v%d a/1 1:GenerateAssistant []", version+1))
			st := w.chat.Status
			if st.Turn.Message != "a" || st.Internal.Turn.ContentHash != "new" || st.Turn.Index != 0 || st.LastError != nil {
				t.Errorf("turn is %+v", st.Turn)
			}
			if want := (v1beta1.SupersededRange{FromIndex: 1, BeforeVersion: version + 1}); st.Internal.Superseded == nil ||
				*st.Internal.Superseded != want {
				t.Errorf("superseded are %+v", st.Internal.Superseded)
			}
			if len(w.last.Superseded) != len(queue)+dropped {
				t.Errorf("dropped %v", w.last.Superseded)
			}
			if w.pass(nil); !w.last.PutAside || w.chat.Status.Internal.Superseded != nil {
				t.Error("what left the history is not put aside")
			}
		})
	}
}

func TestEditOfCurrentMessageKeepsItsPosition(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).say("b").edit("b", "c-1-1", 2).
		want("Running v4 b/3 1:GenerateAssistant []")
	if turn := w.chat.Status.Turn; turn.Parent != "c-1-1" || turn.Index != 2 || turn.HistoryVersion != 4 {
		t.Errorf("turn is %+v", turn)
	}
	if len(w.last.Superseded) != 0 {
		t.Errorf("dropped %v", w.last.Superseded)
	}
}

func TestADeletedMessageTakesWhatFollowedAlong(t *testing.T) {
	user := question("a")
	user.Status = v1beta1.ChatMessageStatus{Index: new(int64), HistoryVersion: 1, ContentHash: "hash of a"}
	calling := chattest.Generated("call", v1beta1.RoleAssistant, chattest.Calls("1"))
	answered := chattest.Generated("reply", v1beta1.RoleAssistant, chattest.Says("hi"))
	for name, c := range map[string]struct {
		kept []*v1beta1.ChatMessage
		want string
	}{
		"everything":           {nil, "Waiting v5 /0 - []"},
		"a reply":              {[]*v1beta1.ChatMessage{user}, "Running v5 a/1 1:GenerateAssistant []"},
		"the results of calls": {[]*v1beta1.ChatMessage{user, calling}, "Running v5 call/2 1:ExecuteTools []"},
		"the reply to results": {[]*v1beta1.ChatMessage{user, calling,
			chattest.Generated("results", v1beta1.RoleTool, chattest.Results("1"))},
			"Running v5 results/3 1:GenerateAssistant []"},
		"a User message": {[]*v1beta1.ChatMessage{user, answered}, "Waiting v5 reply/2 - []"},
		"what followed a partial one": {[]*v1beta1.ChatMessage{user,
			chattest.Generated("part", v1beta1.RoleAssistant, chattest.Calls("1"), chattest.Interrupted())},
			"Waiting v5 part/2 - []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(chattest.Says("hi")).say("b").answer(chattest.Says("hi")).
				want("Waiting v4 c-3-1/4 - []")
			w.pass(func(f *Facts) { f.Truncated = rest(slices.Clone(c.kept)) }).want(c.want)
			if got := w.chat.Status.Internal.Superseded; got == nil || got.FromIndex != int64(len(c.kept)) ||
				got.BeforeVersion != 5 {
				t.Errorf("superseded are %+v", got)
			}
		})
	}
}

func TestMessageIsProcessedAfterEditDeferredByDeletion(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	w.pass(func(f *Facts) {
		f.Truncated = rest([]*v1beta1.ChatMessage{question("a")})
		f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}}
		f.Open = messages(false, "later")
	}).want("Running v3 a/1 1:GenerateAssistant []")
	w.edit("a", "", 0).say("later").want("Running v4 a/1 1:GenerateAssistant [later]")
}

func TestDeletedReplyIsMadeAnewBeforeTheQueue(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).say("b").say("c")
	w.pass(func(f *Facts) { f.Truncated = rest([]*v1beta1.ChatMessage{question("a")}) }).
		want("Running v4 a/1 1:GenerateAssistant [c]")
	w.answer(chattest.Says("hi")).want("Running v6 c/3 1:GenerateAssistant []")
}

func TestInvalidStateBecomesError(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	w.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "b"}}
	w.pass(nil).want("Error v3 c-1-1/2 - [b]")
	if got := w.chat.Status.LastError.Reason; got != v1beta1.ErrorStateInvalid {
		t.Errorf("reason is %s", got)
	}
	w.say("c").want("Running v4 b/3 1:GenerateAssistant [c]")
}

func TestChatWithoutSlotReportsReasonAndKeepsPosition(t *testing.T) {
	held := func(by string) func(*Facts) {
		return func(f *Facts) { f.NoCapacity = by }
	}
	w := newWorld(t).pass(func(f *Facts) { f.Open, f.NoCapacity = messages(false, "a"), "ChatQuota q allows 1 chat" })
	since := w.chat.Status.WaitingSince
	if since == nil || w.chat.Status.Generation != nil {
		t.Fatalf("waits since %v with the attempt %v", since, w.chat.Status.Generation)
	}
	w.now = w.now.Add(time.Minute)
	w.pass(held("ChatQuota q allows 2 chats"))
	ready := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady)
	if v1beta1.ReasonOf(ready) != v1beta1.ReasonWaitingForCapacity || ready.Message != "ChatQuota q allows 2 chats" {
		t.Errorf("Ready says %s: %s", ready.Reason, ready.Message)
	}
	if !w.chat.Status.WaitingSince.Equal(since) {
		t.Errorf("waits since %v, after %v", w.chat.Status.WaitingSince, since)
	}
	if w.pass(held("")); w.chat.Status.WaitingSince != nil || w.chat.Status.Generation == nil {
		t.Errorf("with a place it waits since %v with the attempt %v", w.chat.Status.WaitingSince, w.chat.Status.Generation)
	}
}

func TestFullQueueHasRoomToCutIn(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
	w.say("a").say("b").say("c")
	if len(w.last.Rejected) != 1 {
		t.Fatalf("rejected are %v", w.last.Rejected)
	}
	for i := range v1beta1.RoomToCutIn {
		w.cutIn(fmt.Sprint("cut", i))
		if len(w.last.Rejected) != 0 {
			t.Fatalf("message %d that cuts in is refused: %v", i, w.last.Rejected)
		}
	}
	w.cutIn("d")
	if len(w.last.Rejected) != 1 || w.last.Rejected[0].Reason != v1beta1.ReasonQueueFull {
		t.Errorf("the queue has no bound: %v", w.last.Rejected)
	}
}

func TestInterruptingMessagePromotesEarlierInterruptingMessages(t *testing.T) {
	w := newWorld(t).say("a").say("b").say("c").answer(chattest.Fails(v1beta1.ErrorRequestRejected)).
		want("Error v1 a/1 - [b c]")
	w.cutIn("d").want("Running v2 b/2 1:GenerateAssistant [c d]") // Nothing was under way: it came last.
	w.cutIn("e").want("Interrupting v2 b/2 1:GenerateAssistant [d e c]")
}
