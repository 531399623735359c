// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// cutIn is a message that interrupts.
func cutIn(ns, chat, name string) *v1beta1.ChatMessage {
	return chattest.In(ns, chattest.User(chat, name, chattest.CutsIn))
}

// patch changes an object as a person would.
func patch(t *testing.T, o client.Object, format string, args ...any) {
	t.Helper()
	body := fmt.Appendf(nil, format, args...)
	if err := cluster.Client.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", body)); err != nil {
		t.Fatalf("patching %s: %v", o.GetName(), err)
	}
}

func remove(t *testing.T, o client.Object) {
	t.Helper()
	if err := cluster.Client.Delete(t.Context(), o); err != nil {
		t.Fatalf("deleting %s: %v", o.GetName(), err)
	}
}

func annotate(t *testing.T, ns, chat, key, token string) {
	t.Helper()
	patch(t, newChat(ns, chat, ""), `{"metadata":{"annotations":{%q:%q}}}`, key, token)
}

func edit(t *testing.T, ns, name, content string) {
	t.Helper()
	patch(t, say(ns, "", name), `{"spec":{"content":%q}}`, content)
}

// waitForHistory waits until the chat has that head and phase.
func waitForHistory(t *testing.T, ns, chat string, phase v1beta1.ChatPhase, head string, length int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("chat %s is %s at %s/%d", chat, phase, head, length), func() bool {
		st := chatIn(t, ns, chat).Status
		return st.Phase == phase && st.History.Head == head && st.History.Length == length
	})
}

func waitGone(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, "message "+name+" is gone", func() bool {
		var m v1beta1.ChatMessage
		return apierrors.IsNotFound(cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &m))
	})
}

// answered begins a chat whose turns on these messages are over: versions 1, 3, ... answered by c-1-1, c-3-1, ...
func answered(t *testing.T, ns string, more ...string) {
	t.Helper()
	answers(t, started(t, ns, "c", "first"), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	for i, name := range more {
		create(t, say(ns, "c", name))
		answers(t, assigned(t, ns, "c", int64(2*i+3), 1), chattest.Says("Fine."))
		waitForMessage(t, ns, name, metav1.ConditionTrue, v1beta1.ReasonAnswered)
	}
}

func TestAnAnnotationInterruptsOnce(t *testing.T) {
	ns := parallel(t)
	started(t, ns, "c", "first")
	annotate(t, ns, "c", v1beta1.AnnotationInterrupt, "one")
	waitForPhase(t, ns, "c", v1beta1.ChatInterrupting)
	answers(t, chatIn(t, ns, "c"), chattest.Says("Fine."), chattest.Interrupted(), chattest.Uncounted())
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
	waitForMessage(t, ns, "c-prompt", metav1.ConditionFalse, v1beta1.ReasonInterrupted)

	create(t, say(ns, "c", "next")) // The old token interrupts nothing more.
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "next", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	annotate(t, ns, "c", v1beta1.AnnotationInterrupt, "two")
	eventually(t, "the second token is refused", func() bool {
		requests := chatIn(t, ns, "c").Status.Requests
		return len(requests) == 1 && requests[0].Token == "two" && requests[0].Outcome == v1beta1.RequestRefused &&
			requests[0].Message != ""
	})
}

func TestAMessageThatCutsInIsAnsweredNext(t *testing.T) {
	ns := parallel(t)
	started(t, ns, "c", "first")
	queued(t, ns, "c", "queued")
	create(t, cutIn(ns, "c", "urgent"))
	waitForPhase(t, ns, "c", v1beta1.ChatInterrupting)
	answers(t, chatIn(t, ns, "c"), chattest.Interrupted())
	urgent := assigned(t, ns, "c", 2, 1)
	if got := urgent.Status; got.Turn.Message != "urgent" || got.Turn.Parent != "c-prompt" || len(got.Queue) != 1 {
		t.Errorf("turn %+v, queue %v", got.Turn, got.Queue)
	}
	waitForMessage(t, ns, "c-prompt", metav1.ConditionFalse, v1beta1.ReasonInterrupted)
	waitGone(t, ns, "c-1-1")
	patch(t, say(ns, "c", "queued"), `{"spec":{"whenBusy":"Interrupt"}}`)
	waitForPhase(t, ns, "c", v1beta1.ChatInterrupting)
	answers(t, chatIn(t, ns, "c"), chattest.Says("Fine."), chattest.Interrupted(), chattest.Uncounted())
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "queued", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	waitForMessage(t, ns, "urgent", metav1.ConditionFalse, v1beta1.ReasonInterrupted)
}

func TestEditSupersedesWhatFollowed(t *testing.T) {
	ns := parallel(t)
	answered(t, ns, "second", "third")
	edit(t, ns, "second", "I meant something else")
	chat := assigned(t, ns, "c", 7, 1)
	if got := chat.Status; got.History.Head != "second" || got.History.Length != 3 || got.Turn.Parent != "c-1-1" {
		t.Errorf("history %+v, turn %+v", got.History, got.Turn)
	}
	waitGone(t, ns, "c-3-1")
	waitGone(t, ns, "c-5-1")
	waitForMessage(t, ns, "third", metav1.ConditionFalse, v1beta1.ReasonSuperseded)
	answers(t, chatIn(t, ns, "c"), chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-7-1", 4)
	eventually(t, "the edited message says that it is answered", func() bool { // It said so of its old words, too.
		st := messageIn(t, ns, "second").Status
		return st.HistoryVersion == 7 && readyReason(st.Conditions) == v1beta1.ReasonAnswered
	})
	eventually(t, "nothing is left to put aside",
		func() bool { return chatIn(t, ns, "c").Status.Internal.Superseded == nil })
	if m := messageIn(t, ns, "second"); m.Status.HistoryVersion != 7 || m.Status.ObservedGeneration != m.Generation {
		t.Errorf("status of the edited message is %+v", m.Status)
	}
}

func TestEditDuringGenerationDiscardsStaleReply(t *testing.T) {
	ns := parallel(t)
	old := started(t, ns, "c", "first")
	queued(t, ns, "c", "queued")
	edit(t, ns, "c-prompt", "I meant something else")
	fresh := assigned(t, ns, "c", 2, 1)
	waitForMessage(t, ns, "queued", metav1.ConditionFalse, v1beta1.ReasonSuperseded)
	answers(t, old, chattest.Says("Fine."))
	waitGone(t, ns, "c-1-1")
	answers(t, fresh, chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-2-1", 2)
}

func TestADeletedReplyIsGeneratedAnew(t *testing.T) {
	ns := parallel(t)
	answered(t, ns, "second")
	remove(t, messageIn(t, ns, "c-3-1"))
	chat := assigned(t, ns, "c", 5, 1)
	if got := chat.Status; got.History.Head != "second" || got.History.Length != 3 || got.Turn.Message != "second" {
		t.Errorf("history %+v, turn %+v", got.History, got.Turn)
	}
	answers(t, chat, chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-5-1", 4)
	waitForMessage(t, ns, "second", metav1.ConditionTrue, v1beta1.ReasonAnswered)
}

func TestADeletedMessageTakesWhatFollowsAlong(t *testing.T) {
	ns := parallel(t)
	answered(t, ns, "second", "third")
	remove(t, messageIn(t, ns, "second"))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
	waitGone(t, ns, "c-3-1")
	waitGone(t, ns, "c-5-1")
	waitForMessage(t, ns, "third", metav1.ConditionFalse, v1beta1.ReasonSuperseded)
	remove(t, messageIn(t, ns, "c-prompt"))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "", 0)
	create(t, say(ns, "c", "afresh"))
	chat := assigned(t, ns, "c", 9, 1)
	got := chat.Status
	check.Equal(t, "history", []any{"afresh", 1}, []any{got.History.Head, got.History.Length})
}

func TestASuspendedChatHoldsItsWork(t *testing.T) {
	ns := parallel(t)
	started(t, ns, "c", "first")
	patch(t, newChat(ns, "c", ""), `{"spec":{"suspend":true}}`)
	answers(t, chatIn(t, ns, "c"), chattest.Calls("call_1"))
	eventually(t, "the chat says that it is suspended", func() bool {
		st := chatIn(t, ns, "c").Status
		return st.History.Version == 2 && st.Generation == nil &&
			v1beta1.ReasonOf(&st.Conditions[0]) == v1beta1.ReasonSuspended
	})
	patch(t, newChat(ns, "c", ""), `{"spec":{"suspend":false}}`)
	assigned(t, ns, "c", 2, 1)
}

func TestClearingHidesTheOldContextFromTheModel(t *testing.T) {
	ns := parallel(t)
	answered(t, ns)
	annotate(t, ns, "c", v1beta1.AnnotationClear, "one")
	eventually(t, "the context begins behind the reply", func() bool {
		h := chatIn(t, ns, "c").Status.History
		return h.ContextStart == 2 && h.Length == 2
	})
	create(t, say(ns, "c", "next"))
	answers(t, assigned(t, ns, "c", 4, 1), chattest.Says("Fine."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-4-1", 4)
}

func TestDeletionWhileManagerIsDownIsDetected(t *testing.T) {
	ns := namespace(t)
	answered(t, ns, "second")
	// The manager that meets the chat for the first time must find the gap, so this one is stopped meanwhile.
	restart := stopManager(t)
	remove(t, messageIn(t, ns, "c-1-1"))
	restart()
	chat := assigned(t, ns, "c", 5, 1)
	got := chat.Status
	check.Equal(t, "history", []any{"c-prompt", 1}, []any{got.History.Head, got.History.Length})
	waitForMessage(t, ns, "second", metav1.ConditionFalse, v1beta1.ReasonSuperseded)
}
