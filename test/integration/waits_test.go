// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// limited lets one chat of each sort generate at once in the namespace.
func limited(t *testing.T, ns string) {
	t.Helper()
	create(t, chatQuota(ns, "one", new(int32(1)), new(int32(1))))
	waitForQuota(t, ns, "one", 1, v1beta1.ReasonEnforced)
}

// wantWaiting waits until the chat waits for sub-chats, and holds neither an attempt nor a place in the line.
func wantWaiting(t *testing.T, ns, chat string) {
	t.Helper()
	waitForReady(t, ns, chat, metav1.ConditionUnknown, v1beta1.ReasonWaitingForSubChats)
	if st := chatIn(t, ns, chat).Status; st.Phase != v1beta1.ChatRunning || st.Generation != nil ||
		st.WaitingSince != nil || st.Turn.WaitingFor[0].Deadline == nil {
		t.Fatalf("phase %s, generation %+v, waiting since %v, waits %+v", st.Phase, st.Generation, st.WaitingSince,
			st.Turn.WaitingFor)
	}
}

// forgetAlarms lets a new manager look at the chat: it has set itself no alarm but those that the chat's status asks
// for, so that what happens next must wake it.
func forgetAlarms(t *testing.T, ns, chat, systemPrompt string) {
	t.Helper()
	stopManager(t)()
	patch(t, newChat(ns, chat, ""), `{"spec":{"systemPrompt":%q}}`, systemPrompt)
	eventually(t, "chat "+chat+" is looked at", func() bool {
		c := chatIn(t, ns, chat)
		return c.Status.ObservedGeneration == c.Generation
	})
}

// wantTools waits until the chat has an attempt at running tools.
func wantTools(t *testing.T, ns, name string, version int64) *v1beta1.Chat {
	t.Helper()
	chat := assigned(t, ns, name, version, 1)
	if chat.Status.Generation.Action != v1beta1.ActionExecuteTools {
		t.Fatalf("the attempt is %+v", chat.Status.Generation)
	}
	return chat
}

func TestWaitingParentReleasesItsSlot(t *testing.T) {
	ns := parallel(t)
	limited(t, ns)
	root := started(t, ns, "root", "first")
	create(t, subChat(ns, "sub", "root"))
	sub := assigned(t, ns, "sub", 1, 1)
	create(t, newChat(ns, "other", "first"))
	waitForReady(t, ns, "other", metav1.ConditionUnknown, v1beta1.ReasonWaitingForCapacity)

	answers(t, root, chattest.Waits("call_1", "sub", 3600))
	other := assigned(t, ns, "other", 1, 1) // The place is free, and its turn is not over.
	wantWaiting(t, ns, "root")
	answers(t, sub, chattest.Says("Fine."))
	// Done with waiting, it stands in line.
	waitForReady(t, ns, "root", metav1.ConditionUnknown, v1beta1.ReasonWaitingForCapacity)
	answers(t, other, chattest.Says("Fine."))
	root = wantTools(t, ns, "root", 2)
	answers(t, root, chattest.Results("call_1"))
	answers(t, assigned(t, ns, "root", 3, 1), chattest.Says("Fine."))
	waitForHistory(t, ns, "root", v1beta1.ChatWaiting, "root-3-1", 4)
	if st := chatIn(t, ns, "root").Status; st.Turn.WaitingFor != nil {
		t.Errorf("left are the waits %+v", st.Turn.WaitingFor)
	}
}

// A chain of chats of which each waits for the next would stand still if one of them kept the only place of sub-chats.
func TestWaitingSubChatsReleaseSlotsToDescendants(t *testing.T) {
	ns := parallel(t)
	limited(t, ns)
	root := newChat(ns, "root", "first")
	root.Spec.Limits = &v1beta1.ChatLimits{MaxDepth: new(int32(3))}
	create(t, root)
	root = assigned(t, ns, "root", 1, 1)
	create(t, subChat(ns, "sub", "root"))
	sub := assigned(t, ns, "sub", 1, 1)
	create(t, subChat(ns, "deep", "sub"))
	waitForReady(t, ns, "deep", metav1.ConditionUnknown, v1beta1.ReasonWaitingForCapacity) // Both limits are reached.
	answers(t, root, chattest.Waits("call_1", "sub", 3600))
	wantWaiting(t, ns, "root")
	answers(t, sub, chattest.Waits("call_1", "deep", 3600))
	answers(t, assigned(t, ns, "deep", 1, 1), chattest.Says("Fine."))
	answers(t, wantTools(t, ns, "sub", 2), chattest.Results("call_1"))
	wantWaiting(t, ns, "root")
	answers(t, assigned(t, ns, "sub", 3, 1), chattest.Says("Fine."))
	answers(t, wantTools(t, ns, "root", 2), chattest.Results("call_1"))
	answers(t, assigned(t, ns, "root", 3, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "root", v1beta1.ChatWaiting)
}

func TestWaitSurvivesManagerRestartAndEndsAtDeadline(t *testing.T) {
	ns := namespace(t)
	root := started(t, ns, "root", "first")
	create(t, subChat(ns, "sub", "root"))
	sub := assigned(t, ns, "sub", 1, 1)
	answers(t, root, chattest.Waits("call_1", "sub", 3600))
	wantWaiting(t, ns, "root")
	restart := stopManager(t)
	answers(t, sub, chattest.Says("Fine."))
	restart()
	answers(t, wantTools(t, ns, "root", 2), chattest.Results("call_1"))

	answers(t, assigned(t, ns, "root", 3, 1), chattest.Says("Fine."))
	create(t, say(ns, "sub", "more"))
	assigned(t, ns, "sub", 3, 1)
	create(t, say(ns, "root", "again"))
	answers(t, assigned(t, ns, "root", 5, 1), chattest.Waits("call_1", "sub", 2))
	wantTools(t, ns, "root", 6)
	check.Equal(t, "the sub-chat is", v1beta1.ChatRunning, chatIn(t, ns, "sub").Status.Phase)
}

func TestFailedOrDeletedSubChatEndsWait(t *testing.T) {
	ns := namespace(t)
	root := started(t, ns, "root", "first")
	create(t, subChat(ns, "fails", "root"))
	fails := assigned(t, ns, "fails", 1, 1)
	create(t, subChat(ns, "goes", "root"))
	assigned(t, ns, "goes", 1, 1)
	answers(t, root, chattest.Waits("call_1", "fails", 3600))
	wantWaiting(t, ns, "root")
	forgetAlarms(t, ns, "root", "one")
	answers(t, fails, chattest.Fails(v1beta1.ErrorContextTooLong))
	answers(t, wantTools(t, ns, "root", 2), chattest.Results("call_1"))
	answers(t, assigned(t, ns, "root", 3, 1), chattest.Waits("call_2", "goes", 3600))
	wantWaiting(t, ns, "root")
	forgetAlarms(t, ns, "root", "two")
	remove(t, newChat(ns, "goes", ""))
	wantTools(t, ns, "root", 4)
}

func TestWaitIncludesOpenMessagesOfTheSubChat(t *testing.T) {
	ns := namespace(t)
	root := started(t, ns, "root", "first")
	create(t, subChat(ns, "sub", "root"))
	answers(t, assigned(t, ns, "sub", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "sub", v1beta1.ChatWaiting)
	restart := stopManager(t)
	create(t, say(ns, "sub", "more"))
	answers(t, root, chattest.Waits("call_1", "sub", 3600))
	restart()
	wantWaiting(t, ns, "root")
	answers(t, assigned(t, ns, "sub", 3, 1), chattest.Says("Fine."))
	wantTools(t, ns, "root", 2)
}

func TestOnlyChatsBelowAreWaitedFor(t *testing.T) {
	ns := parallel(t)
	started(t, ns, "other", "first")
	for chat, waited := range map[string]string{"a": "other", "b": "nobody", "c": "c"} {
		create(t, newChat(ns, chat, "first"))
		answers(t, assigned(t, ns, chat, 1, 1), chattest.Waits("call_1", waited, 3600))
		wantTools(t, ns, chat, 2)
	}
}

func TestWaitingForSubChatsIsInterruptedAndArchived(t *testing.T) {
	ns := parallel(t)
	root := started(t, ns, "root", "first")
	create(t, subChat(ns, "sub", "root"))
	sub := assigned(t, ns, "sub", 1, 1)
	answers(t, root, chattest.Waits("call_1", "sub", 3600))
	wantWaiting(t, ns, "root")
	create(t, say(ns, "root", "queued"))
	eventually(t, "the message is queued", func() bool { return len(chatIn(t, ns, "root").Status.Queue) == 1 })
	annotate(t, ns, "root", v1beta1.AnnotationInterrupt, "t")
	answers(t, assigned(t, ns, "root", 3, 1), chattest.Waits("call_1", "sub", 3600)) // The queued message is answered.
	wantWaiting(t, ns, "root")
	patch(t, newChat(ns, "root", ""), `{"spec":{"archived":true}}`)
	answers(t, sub, chattest.Says("Fine."))
	waitForReady(t, ns, "sub", metav1.ConditionUnknown, v1beta1.ReasonArchiving)
	answers(t, wantTools(t, ns, "root", 4), chattest.Results("call_1"))
	answers(t, assigned(t, ns, "root", 5, 1), chattest.Says("Fine."))
	waitForReady(t, ns, "root", metav1.ConditionTrue, v1beta1.ReasonArchived)
	waitForReady(t, ns, "sub", metav1.ConditionTrue, v1beta1.ReasonArchived)
}
