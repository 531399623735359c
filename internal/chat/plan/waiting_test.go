// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// atWork says of sub-chats that they are at work.
func atWork(chats ...string) map[string]bool {
	works := map[string]bool{}
	for _, name := range chats {
		works[name] = true
	}
	return works
}

// waitFor makes the reply one that waits for sub-chats, each for a minute longer than the one before.
func waitFor(chats ...string) chattest.Reply {
	return func(m *v1beta1.ChatMessage) {
		for i, chat := range chats {
			chattest.Waits("call "+chat, chat, int32(60*(i+1)))(m)
		}
	}
}

// working passes while the sub-chats are at work.
func (w *world) working(chats ...string) *world {
	w.t.Helper()
	return w.pass(func(f *Facts) { f.SubChats = atWork(chats...) })
}

// waiting is a chat whose reply waits for the sub-chats, all of which are at work.
func waiting(t *testing.T, chats ...string) *world {
	t.Helper()
	w := newWorld(t).say("a")
	w.pass(func(f *Facts) { f.Result, f.SubChats = chattest.Answer(w.chat, waitFor(chats...)), atWork(chats...) })
	return w.want("Running v2 c-1-1/2 - []")
}

func (w *world) wantReason(reason v1beta1.ConditionReason) *world {
	w.t.Helper()
	if c := meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady); c == nil ||
		v1beta1.ReasonOf(c) != reason {
		w.t.Fatalf("Ready is %+v, want reason %s", c, reason)
	}
	return w
}

func TestNoAttemptStartsUntilAllSubChatsFinish(t *testing.T) {
	w := waiting(t, "x", "y").wantReason(v1beta1.ReasonWaitingForSubChats)
	if c := meta.FindStatusCondition(w.chat.Status.Conditions,
		v1beta1.ConditionReady); c.Message != "Waits for sub-chats x, y, at most until 2026-01-02T03:06:05Z" {
		t.Errorf("the condition says %q", c.Message)
	}
	w.working("y").want("Running v2 c-1-1/2 - []")
	w.pass(nil).want("Running v2 c-1-1/2 1:ExecuteTools []")
	w.answer(chattest.Results("1")).want("Running v3 c-2-1/3 1:GenerateAssistant []")
	if w.chat.Status.Turn.WaitingFor != nil {
		t.Error("the waits outlive their calls")
	}
}

func TestFinishedSubChatsAreNotAwaited(t *testing.T) {
	newWorld(t).say("a").answer(waitFor("x")).want("Running v2 c-1-1/2 1:ExecuteTools []")
}

func TestAWaitEndsWithItsDeadline(t *testing.T) {
	w := waiting(t, "x", "y")
	w.now = now.Add(time.Minute)
	w.working("x", "y").want("Running v2 c-1-1/2 - []")
	w.working("x").want("Running v2 c-1-1/2 1:ExecuteTools []")
	w = waiting(t, "x", "y")
	w.now = now.Add(2 * time.Minute)
	w.working("x", "y").want("Running v2 c-1-1/2 1:ExecuteTools []")
}

// Security (a hostile sub-chat): cannot delay its parent longer than the call may wait. Also
// TestFinishedSubChatsAreNotAwaited of internal/chat/plan.
func TestWaitingForSubChatsUsesNoSlot(t *testing.T) {
	w := newWorld(t).say("a")
	full := func(f *Facts) { f.SubChats, f.NoCapacity = atWork("x"), "full" }
	w.pass(func(f *Facts) { full(f); f.Result = chattest.Answer(w.chat, waitFor("x")) }).
		wantReason(v1beta1.ReasonWaitingForSubChats)
	if w.chat.Status.WaitingSince != nil {
		t.Error("the chat waits for capacity, too")
	}
	w.pass(func(f *Facts) { f.NoCapacity = "full" }).wantReason(v1beta1.ReasonWaitingForCapacity)
	if w.chat.Status.WaitingSince == nil {
		t.Error("the chat does not wait for capacity")
	}
	w.pass(nil).want("Running v2 c-1-1/2 1:ExecuteTools []")
}

func TestWaitingChatCanBeInterruptedEditedAndSuspended(t *testing.T) {
	interrupt := []Request{{Kind: v1beta1.RequestInterrupt, Token: "1"}}
	w := waiting(t, "x").pass(func(f *Facts) { f.SubChats, f.Requests = atWork("x"), interrupt })
	w.want("Waiting v3 c-1-1/2 - []").wantReason(v1beta1.ReasonInterrupted)
	w.say("b").want("Running v4 b/3 1:GenerateAssistant []")

	w = waiting(t, "x")
	w.pass(func(f *Facts) { f.SubChats, f.Open = atWork("x"), messages(false, "b") }).want("Running v2 c-1-1/2 - [b]")
	w.pass(func(f *Facts) { f.SubChats, f.Requests = atWork("x"), interrupt }).
		want("Running v3 b/3 1:GenerateAssistant []")

	w = waiting(t, "x")
	w.pass(func(f *Facts) {
		f.SubChats, f.Edited = atWork("x"), &Edited{Message: Message{Name: "a", ContentHash: "other"}}
	}).want("Running v3 a/1 1:GenerateAssistant []")

	w = waiting(t, "x").pass(func(f *Facts) { f.Suspended = true }).wantReason(v1beta1.ReasonSuspended)
	w.working("x").wantReason(v1beta1.ReasonWaitingForSubChats)
}

func TestCallWaitsForSubChatOnceApproved(t *testing.T) {
	ask := func(m *v1beta1.ChatMessage) {
		waitFor("own", "x", "y")(m)
		m.Spec.Generation.CallsRequiringAction = 2
		for i := range m.Spec.Generation.WaitingFor[1:] {
			m.Spec.Generation.WaitingFor[i+1].RequiresAction = v1beta1.RequiresApproval
		}
	}
	w := newWorld(t).say("a")
	w.pass(func(f *Facts) { f.Result, f.SubChats = chattest.Answer(w.chat, ask), atWork("x", "y") })
	w.want("Running v2 c-1-1/2 1:ExecuteTools []") // The one that waits for nobody runs first.
	calls := pending(v1beta1.RequiresApproval, "call x", "call y")
	w.pass(func(f *Facts) { f.Result, f.Calls = chattest.Answer(w.chat, chattest.Results("1")), calls }).
		want("RequiresAction v3 c-2-1/3 - []")
	w.approve("call x", v1beta1.DecisionApprove)
	w.now = now.Add(time.Hour)
	w.pass(func(f *Facts) {
		f.SubChats = atWork("x", "y")
		f.Approvals = []Approval{{v1beta1.ToolDecision{ID: "call y", Decision: v1beta1.DecisionDeny, Approval: "no"}}}
	}).want("Running v4 c-2-1/3 - []").wantReason(v1beta1.ReasonWaitingForSubChats)
	w.working("y").want("Running v4 c-2-1/3 1:ExecuteTools []") // The denied one waits for nothing.
	if w.answer(chattest.Results("1")); w.chat.Status.Turn.WaitingFor != nil {
		t.Errorf("left are %+v", w.chat.Status.Turn.WaitingFor)
	}
}

func TestLostCallAttemptIsRetriedImmediately(t *testing.T) {
	w := waiting(t, "x").pass(nil).want("Running v2 c-1-1/2 1:ExecuteTools []")
	w.pass(func(f *Facts) { f.PodLost, f.SubChats = true, atWork("x") }).want("Running v2 c-1-1/2 2:ExecuteTools []")
}

func TestFailedCallRetryIgnoresUnfinishedSubChats(t *testing.T) {
	w := waiting(t, "x").pass(nil).want("Running v2 c-1-1/2 1:ExecuteTools []")
	w.pass(func(f *Facts) {
		f.Result, f.SubChats = chattest.Answer(w.chat, chattest.Fails(v1beta1.ErrorOverloaded, chattest.ForNow)), atWork("x")
	}).wantReason(v1beta1.ReasonRetrying)
}

func TestADeletedResultIsWaitedForAnew(t *testing.T) {
	reply := chattest.Answer(newWorld(t).say("a").chat, waitFor("x"))
	rest := rest([]*v1beta1.ChatMessage{question("a"), reply})
	if got := rest.Turn.WaitingFor; len(got) != 1 || got[0].Chat != "x" || got[0].Deadline != nil {
		t.Fatalf("left are %+v", got)
	}
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	w.pass(func(f *Facts) { f.Truncated, f.SubChats = rest, atWork("x") }).wantReason(v1beta1.ReasonWaitingForSubChats)
	w.pass(nil).want("Running v3 c-1-1/2 1:ExecuteTools []")
}
