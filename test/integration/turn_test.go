// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/testmanager"
)

func TestAPromptIsAnsweredInOneStep(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "triage", "hello"))

	chat := assigned(t, ns, "triage", 1, 1)
	if got := chat.Status; got.Phase != v1beta1.ChatRunning || got.History.Head != "triage-prompt" ||
		got.History.Length != 1 {
		t.Fatalf("unexpected status %+v", got)
	}
	answers(t, chat, chattest.Says("Fine."))

	waitForPhase(t, ns, "triage", v1beta1.ChatWaiting)
	chat = chatIn(t, ns, "triage")
	h := chat.Status.History
	check.Equal(t, "history is", []any{"triage-1-1", 2, 2}, []any{h.Head, h.Version, h.Length})
	check.Equal(t, "reply", []any{"Fine.", 15, "scripted"},
		[]any{chat.Status.LastReply, chat.Status.Usage.TotalTokens, chat.Status.Model})
	waitForMessage(t, ns, "triage-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	prompt := messageIn(t, ns, "triage-prompt")
	check.Equal(t, "status of the prompt is", []any{v1beta1.MessageCommitted, 0, 1},
		[]any{prompt.Status.State, *prompt.Status.Index, prompt.Status.HistoryVersion})
}

func TestAPromptNamesTheAuthorOfItsChat(t *testing.T) {
	ns := parallel(t)
	chat := newChat(ns, "c", "hello")
	chat.Annotations = map[string]string{v1beta1.AnnotationCreatedBy: "anna"}
	create(t, chat)
	assigned(t, ns, "c", 1, 1)
	check.Equal(t, "the prompt was created by", "anna",
		messageIn(t, ns, "c-prompt").Annotations[v1beta1.AnnotationCreatedBy])
}

func TestToolCallYieldsTurnOfThreeSteps(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "what time is it?"), chattest.Calls("call_1"))
	chat := assigned(t, ns, "c", 2, 1)
	if chat.Status.Generation.Action != v1beta1.ActionExecuteTools {
		t.Fatalf("action is %s", chat.Status.Generation.Action)
	}
	answers(t, chat, chattest.Results("call_1"))
	chat = assigned(t, ns, "c", 3, 1)
	if chat.Status.Generation.Action != v1beta1.ActionGenerateAssistant {
		t.Fatalf("action is %s", chat.Status.Generation.Action)
	}
	answers(t, chat, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	got := chatIn(t, ns, "c").Status
	check.Equal(t, "turn", []any{2, 4}, []any{got.Turn.Steps, got.History.Length})
}

func TestQueuedMessagesArePromotedInOrder(t *testing.T) {
	ns := parallel(t)
	first := started(t, ns, "c", "first")
	queued(t, ns, "c", "second")
	queued(t, ns, "c", "third")

	answers(t, first, chattest.Says("Fine."))
	second := assigned(t, ns, "c", 3, 1)
	if got := second.Status; got.Turn.Message != "second" || got.Turn.Parent != "c-1-1" || len(got.Queue) != 1 {
		t.Fatalf("turn %+v, queue %v", got.Turn, got.Queue)
	}
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	answers(t, second, chattest.Says("Fine."))
	answers(t, assigned(t, ns, "c", 5, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	waitForMessage(t, ns, "third", metav1.ConditionTrue, v1beta1.ReasonAnswered)
}

func TestDeletedQueuedMessageIsNeverAnswered(t *testing.T) {
	ns := parallel(t)
	first := started(t, ns, "c", "first")
	second := say(ns, "c", "second")
	create(t, second)
	waitForMessage(t, ns, "second", metav1.ConditionUnknown, v1beta1.ReasonQueued)
	check.OK(t, cluster.Client.Delete(t.Context(), second))
	eventually(t, "the queue is empty", func() bool { return len(chatIn(t, ns, "c").Status.Queue) == 0 })
	answers(t, first, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
}

func TestOneMessageTooManyIsRejected(t *testing.T) {
	ns := parallel(t)
	chat := newChat(ns, "c", "first")
	chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
	create(t, chat)
	assigned(t, ns, "c", 1, 1)
	queued(t, ns, "c", "second")
	create(t, say(ns, "c", "third"))
	waitForMessage(t, ns, "third", metav1.ConditionFalse, v1beta1.ReasonQueueFull)
}

func TestErrorIsLeftByANewMessage(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", "first"))
	report := chattest.Answer(assigned(t, ns, "c", 1, 1), chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	create(t, report)
	waitForPhase(t, ns, "c", v1beta1.ChatError)
	chat := chatIn(t, ns, "c")
	stalled := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionStalled)
	if stalled == nil || stalled.Reason != "AuthenticationFailed" || stalled.Message != "what is wrong. what to do" {
		t.Errorf("Stalled is %+v", stalled)
	}
	waitForMessage(t, ns, "c-prompt", metav1.ConditionFalse, "AuthenticationFailed")
	eventually(t, "the report of the failure is removed", func() bool { return gone(t, report) })

	create(t, say(ns, "c", "again"))
	chat = assigned(t, ns, "c", 2, 1)
	if chat.Status.LastError != nil || chat.Status.Turn.Parent != "c-prompt" {
		t.Errorf("last error %v, turn %+v", chat.Status.LastError, chat.Status.Turn)
	}
}

func TestAResultWithAnotherFenceIsNeverCommitted(t *testing.T) {
	ns := parallel(t)
	chat := started(t, ns, "c", "first")
	answers(t, chat, chattest.Lost())
	second := assigned(t, ns, "c", 1, 2)

	late := chattest.Answer(chat, chattest.Says("Fine."))
	late.Name = "c-late"
	create(t, late)
	eventually(t, "the late result is removed", func() bool {
		return gone(t, late)
	})
	answers(t, second, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	check.Equal(t, "head is", "c-1-2", chatIn(t, ns, "c").Status.History.Head)
}

func TestALabelDuringTheCallCostsNothing(t *testing.T) {
	ns := parallel(t)
	chat := started(t, ns, "c", "first")
	before := chat.DeepCopy()
	chat.Labels = map[string]string{"team": "a"}
	chat.Spec.SystemPrompt = "Be brief."
	check.OK(t, cluster.Client.Patch(t.Context(), chat, client.MergeFrom(before)))
	answers(t, before, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	after := chatIn(t, ns, "c")
	if after.Status.History.Head != "c-1-1" || after.Spec.SystemPrompt != "Be brief." || after.Labels["team"] != "a" {
		t.Errorf("status %+v, spec %+v, labels %v", after.Status.History, after.Spec, after.Labels)
	}
	eventually(t, "the edit is observed",
		func() bool { c := chatIn(t, ns, "c"); return c.Status.ObservedGeneration == c.Generation })
}

func TestAChatWithoutModelConfigWaitsForOne(t *testing.T) {
	ns := parallelBare(t)
	create(t, newChat(ns, "c", "first"))
	eventually(t, "the chat waits for what may still come", func() bool {
		conditions := chatIn(t, ns, "c").Status.Conditions
		c := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
		return c != nil && c.Reason == "ModelConfigNotFound" &&
			meta.IsStatusConditionTrue(conditions, v1beta1.ConditionReconciling)
	})
	eventually(t, "the chat says that a person is needed", func() bool {
		c := meta.FindStatusCondition(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionStalled)
		return c != nil && c.Reason == "ModelConfigNotFound"
	})
	waitForMessage(t, ns, "c-prompt", metav1.ConditionUnknown, v1beta1.ReasonWaitingForChat)
	create(t, chattest.In(ns, chattest.Config("late", chattest.Default)))
	assigned(t, ns, "c", 1, 1)
}

func TestAMessageMayComeBeforeItsChat(t *testing.T) {
	ns := parallel(t)
	create(t, say(ns, "c", "early"))
	waitForMessage(t, ns, "early", metav1.ConditionUnknown, v1beta1.ReasonChatNotFound)
	create(t, newChat(ns, "c", ""))
	check.Equal(t, "the turn began with", "early", assigned(t, ns, "c", 1, 1).Status.Turn.Message)
}

func TestRecreatedChatBeginsAfresh(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "first"), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	check.OK(t, cluster.Client.Delete(t.Context(), chatIn(t, ns, "c")))
	chat := started(t, ns, "c", "anew")
	check.Equal(t, "the prompt is", "anew", messageIn(t, ns, "c-prompt").Spec.Content)
	eventually(t, "the old reply is removed",
		func() bool { return gone(t, chattest.Answer(chat, chattest.Says("Fine."))) })
	answers(t, chat, chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
}

func gone(t *testing.T, m *v1beta1.ChatMessage) bool {
	t.Helper()
	var got v1beta1.ChatMessage
	return cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(m), &got) != nil
}

func waitForPhase(t *testing.T, ns, name string, phase v1beta1.ChatPhase) {
	t.Helper()
	eventually(t, "chat "+name+" is "+string(phase), func() bool { return chatIn(t, ns, name).Status.Phase == phase })
}

func waitForMessage(t *testing.T, ns, name string, status metav1.ConditionStatus,
	reason v1beta1.ConditionReason) {
	t.Helper()
	eventually(t, "message "+name+" is "+string(status)+" because of "+string(reason), func() bool {
		var m v1beta1.ChatMessage
		if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &m); err != nil {
			return false
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady)
		return c != nil && c.Status == status && v1beta1.ReasonOf(c) == reason
	})
}

func TestNextTurnPrefersThePodOfTheLast(t *testing.T) {
	ns := parallel(t)
	const chats = testmanager.PodCapacity + 4 // More than one pod takes.
	podOf := map[string]string{}
	for i := range chats {
		name := fmt.Sprint("c", i)
		create(t, newChat(ns, name, "first"))
		chat := assigned(t, ns, name, 1, 1)
		podOf[name] = chat.Status.Generation.Pod
	}
	for name := range podOf {
		answers(t, chatIn(t, ns, name), chattest.Says("Fine."))
	}
	pods := map[string]bool{}
	for name, pod := range podOf {
		waitForPhase(t, ns, name, v1beta1.ChatWaiting)
		pods[pod] = true
	}
	if len(pods) != 2 {
		t.Fatalf("%d chats have %d pods", chats, len(pods))
	}
	for name, pod := range podOf {
		create(t, say(ns, name, name+"-again"))
		if chat := assigned(t, ns, name, 3, 1); chat.Status.Generation.Pod != pod {
			t.Errorf("chat %s went from pod %s to pod %s", name, pod, chat.Status.Generation.Pod)
		}
		answers(t, chatIn(t, ns, name), chattest.Says("Fine."))
		waitForPhase(t, ns, name, v1beta1.ChatWaiting)
	}
}
