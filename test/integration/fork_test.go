// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realpod"
	"parley.dev/parley/test/modelserver"
)

// forkOf is a chat that continues chat c from a message.
func forkOf(ns, name, message, prompt string) *v1beta1.Chat {
	chat := newChat(ns, name, prompt)
	chat.Spec.Fork = &v1beta1.ForkSource{Chat: "c", Message: message}
	return chat
}

// askedLast is the last request to the model.
func askedLast(models *modelserver.Server) string {
	requests := models.Requests()
	return string(requests[len(requests)-1].Body)
}

func messagesOf(t *testing.T, ns, chat string) (names []string) {
	t.Helper()
	var list v1beta1.ChatMessageList
	check.OK(t, cluster.Client.List(t.Context(), &list, client.InNamespace(ns),
		client.MatchingFields{"spec.chatRef.name": chat}))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

func TestForkContinuesFromAReplyWithoutItsSource(t *testing.T) {
	t.Parallel()
	ns, models, _ := servedNamespace(t)
	create(t, newChat(ns, "c", "FIRST-QUESTION"))
	realpod.Run(t, cluster.Config, ns, assigned(t, ns, "c", 1, 1).Status.Generation.Pod)
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, say(ns, "c", "second"))
	waitForMessage(t, ns, "second", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	source := chatIn(t, ns, "c")
	asked := len(models.Requests())

	create(t, forkOf(ns, "f", "c-1-1", "OTHER-QUESTION"))
	waitForMessage(t, ns, "f-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	if now := len(models.Requests()); now != asked+1 {
		t.Errorf("the fork made %d model calls, want 1", now-asked)
	}
	if last := askedLast(models); !strings.Contains(last, "FIRST-QUESTION") || !strings.Contains(last, "Fine.") ||
		!strings.Contains(last, "OTHER-QUESTION") || strings.Contains(last, "second") {
		t.Errorf("the model was told %s", last)
	}
	waitForMessage(t, ns, "f-from-0", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	check.Equal(t, "cost of the fork is that of one turn", len(chatIn(t, ns, "f").Status.Cost), 1)
	if cost, whole := chatIn(t, ns, "f").Status.Cost[0], source.Status.Cost[0]; cost.MicroUnits >= whole.MicroUnits {
		t.Errorf("the fork has cost %d, all of the source %d", cost.MicroUnits, whole.MicroUnits)
	}

	remove(t, newChat(ns, "c", ""))
	eventually(t, "the source and its messages are gone", func() bool { return len(messagesOf(t, ns, "c")) == 0 })
	create(t, say(ns, "f", "third"))
	waitForMessage(t, ns, "third", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	if last := askedLast(models); !strings.Contains(last, "FIRST-QUESTION") || !strings.Contains(last, "OTHER-QUESTION") {
		t.Errorf("after the source was deleted, the model was told %s", last)
	}
	check.Equal(t, "length of the history", int64(6), chatIn(t, ns, "f").Status.History.Length)
}

func TestForkAnswersTheUserMessageItEndsWith(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", "please"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, forkOf(ns, "f", "c-prompt", ""))
	answers(t, assigned(t, ns, "f", 2, 1), chattest.Says("Another answer."))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f-2-1", 2)
	waitForMessage(t, ns, "f-from-0", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	check.Equal(t, "history of the source ends with", "c-1-1", chatIn(t, ns, "c").Status.History.Head)
}

func TestForkContinuesAfterResultsOfTools(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", "please"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Calls("call_1"))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Results("call_1"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, forkOf(ns, "f", "c-2-1", ""))
	fork := assigned(t, ns, "f", 4, 1)
	check.Equal(t, "next action", v1beta1.ActionGenerateAssistant, fork.Status.Generation.Action)
	answers(t, fork, chattest.Says("Another end."))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f-4-1", 4)
}

// The source has run them, or will: people approve a call once.
func TestForkCancelsCallsWithoutResults(t *testing.T) {
	ns := parallel(t)
	create(t, ticketChat(ns))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(clock("call_1"), ticket("call_2")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	create(t, forkOf(ns, "f", "c-1-1", ""))
	waitForReady(t, ns, "f", metav1.ConditionTrue, v1beta1.ReasonInterrupted)
	if now := chatIn(t, ns, "f").Status; now.RequiresAction != nil || now.Generation != nil {
		t.Errorf("the fork requires %+v and generates %+v", now.RequiresAction, now.Generation)
	}
	create(t, say(ns, "f", "next"))
	answers(t, assigned(t, ns, "f", 4, 1), chattest.Says("Fine."))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f-4-1", 4)
	waitForMessage(t, ns, "next", metav1.ConditionTrue, v1beta1.ReasonAnswered) // Its status may be late.
	check.Equal(t, "why the calls have no results", v1beta1.CallsEdited,
		messageIn(t, ns, "next").Status.CallsCanceledReasonBefore)
	check.Equal(t, "calls of the source that wait", 2, len(chatIn(t, ns, "c").Status.RequiresAction.ToolCalls))
}

func TestForkOfForkHasWholeHistory(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", "please"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	create(t, forkOf(ns, "f", "c-1-1", "more"))
	answers(t, assigned(t, ns, "f", 4, 1), chattest.Says("More."))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f-4-1", 4)
	second := forkOf(ns, "g", "f-4-1", "")
	second.Spec.Fork.Chat = "f"
	create(t, second)
	waitForHistory(t, ns, "g", v1beta1.ChatWaiting, "g-4-1", 4)
	waitForMessage(t, ns, "g-from-0", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	waitForMessage(t, ns, "g-from-2", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	check.Equal(t, "messages of the fork", 4, len(messagesOf(t, ns, "g")))
}

func TestForkWaitsForWhatItNames(t *testing.T) {
	ns := parallel(t)
	create(t, forkOf(ns, "f", "c-1-1", ""))
	waitForReady(t, ns, "f", metav1.ConditionUnknown, v1beta1.ReasonForkSourceNotFound)
	create(t, say(ns, "f", "early"))
	create(t, newChat(ns, "c", "please"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	answers(t, assigned(t, ns, "f", 4, 1), chattest.Says("Fine."))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f-4-1", 4)
}

func TestStuckForkRecordsAnEvent(t *testing.T) {
	ns := parallel(t)
	create(t, say(ns, "f", "f-from-0")) // It has the name of a copy.
	create(t, newChat(ns, "c", ""))
	head := turns(t, ns, 1)
	create(t, forkOf(ns, "f", head, ""))
	waitForReady(t, ns, "f", metav1.ConditionFalse, v1beta1.ReasonForkRejected)
	eventually(t, "an Event says what the fork waits for", func() bool {
		return len(eventsOf(t, ns, "f", v1beta1.EventWaiting)) > 0
	})
	check.Equal(t, "notes of the Events", []string{"ForkRejected: Another message has the name f-from-0, which the fork " +
		"needs: delete it"}, eventsOf(t, ns, "f", v1beta1.EventWaiting))
}

func TestForkContinuesWithCopiesThatExist(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	head := turns(t, ns, 2)
	create(t, say(ns, "f", "f-from-2")) // It has the name of a copy.
	create(t, forkOf(ns, "f", head, ""))
	waitForReady(t, ns, "f", metav1.ConditionUnknown, v1beta1.ReasonForkRejected)
	var copied *v1beta1.ChatMessage
	eventually(t, "the other copy exists", func() bool {
		copied = &v1beta1.ChatMessage{}
		return cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "f-from-0"}, copied) == nil
	})
	remove(t, say(ns, "f", "f-from-2"))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f"+head[1:], 4)
	first := messageIn(t, ns, "f-from-0")
	check.Equal(t, "copy", copied.UID, first.UID)
	check.Equal(t, "copy of", string(messageIn(t, ns, "q0").UID), first.Annotations[v1beta1.AnnotationRestoredFrom])
}

func TestArchivedForkContinuesWhenUnarchived(t *testing.T) {
	ns := parallel(t)
	create(t, forkOf(ns, "f", "c-1-1", "more"))
	eventually(t, "the fork waits for its source", func() bool { return chatIn(t, ns, "f").Status.Wait != nil })
	patch(t, newChat(ns, "f", ""), `{"spec":{"archived":true}}`)
	waitForReady(t, ns, "f", metav1.ConditionTrue, v1beta1.ReasonArchived)
	check.Equal(t, "status.archived", true, chatIn(t, ns, "f").Status.Archived)
	create(t, newChat(ns, "c", "please"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	patch(t, newChat(ns, "f", ""), `{"spec":{"archived":false}}`)
	answers(t, assigned(t, ns, "f", 4, 1), chattest.Says("More."))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f-4-1", 4)
	check.Equal(t, "status.archived", false, chatIn(t, ns, "f").Status.Archived)
}

// turns adds turns to chat c, and returns its newest message.
func turns(t *testing.T, ns string, more int) (head string) {
	t.Helper()
	for range more {
		version := chatIn(t, ns, "c").Status.History.Version
		create(t, say(ns, "c", fmt.Sprintf("q%d", version)))
		answers(t, assigned(t, ns, "c", version+1, 1), chattest.Says("Fine."))
		waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	}
	return chatIn(t, ns, "c").Status.History.Head
}

func TestRecreatedForkHasWholeHistory(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	head := turns(t, ns, 6)
	create(t, forkOf(ns, "f", head, ""))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f"+head[1:], 12)
	remove(t, newChat(ns, "f", ""))
	again := forkOf(ns, "f", head, "")
	create(t, again)
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f"+head[1:], 12)
	check.Equal(t, "owner of the first copy", again.UID, messageIn(t, ns, "f-from-0").OwnerReferences[0].UID)
	check.Equal(t, "state of the first copy", v1beta1.MessageCommitted, messageIn(t, ns, "f-from-0").Status.State)
}

// Each of them would list the history.
func TestCopiesAreSettledBeforeTheFork(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	head := turns(t, ns, 3)
	create(t, forkOf(ns, "f", head, ""))
	var fork *v1beta1.Chat
	eventually(t, "the fork has its history", func() bool {
		fork = chatIn(t, ns, "f")
		return fork.Status.History.Length == 6
	})
	for _, name := range []string{"f-from-0", "f-from-2"} {
		waitForMessage(t, ns, name, metav1.ConditionTrue, v1beta1.ReasonAnswered)
		order, err := resourceversion.CompareResourceVersion(messageIn(t, ns, name).ResourceVersion, fork.ResourceVersion)
		check.OK(t, err)
		check.Equal(t, "message "+name+" is settled first", -1, order)
	}
}

func TestForkReplacesCopiesOfRedactedMessages(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	head := turns(t, ns, 2)
	create(t, say(ns, "f", "f-from-2"))
	create(t, forkOf(ns, "f", head, ""))
	eventually(t, "the other copy exists", func() bool {
		key := client.ObjectKey{Namespace: ns, Name: "f-from-0"}
		return cluster.Client.Get(t.Context(), key, &v1beta1.ChatMessage{}) == nil
	})
	redactText(t, ns, "q0")
	remove(t, say(ns, "f", "f-from-2"))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f"+head[1:], 4)
	check.Equal(t, "copied text", "[REDACTED]", messageIn(t, ns, "f-from-0").Spec.Content)
}

// redactText replaces the text of a message.
func redactText(t *testing.T, ns, name string) {
	t.Helper()
	m := messageIn(t, ns, name)
	changed := m.Spec.DeepCopy()
	changed.Content = "[REDACTED]"
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1beta1.AnnotationRedacted, content.Redacted(m, changed))
	m.Spec = *changed
	check.OK(t, cluster.Client.Update(t.Context(), m))
}

func TestForkHasRedactedMessages(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", "SECRET"))
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	waitForMessage(t, ns, "c-prompt", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	redactText(t, ns, "c-prompt")
	create(t, forkOf(ns, "f", "c-1-1", ""))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f-1-1", 2)
	check.Equal(t, "copied text", "[REDACTED]", messageIn(t, ns, "f-from-0").Spec.Content)
}

func TestForkWaitsForEditOfItsSource(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	head := turns(t, ns, 2)
	patch(t, newChat(ns, "c", ""), `{"spec":{"archived":true}}`)
	eventually(t, "the source is archived", func() bool { return chatIn(t, ns, "c").Status.Archived })
	edit(t, ns, "q0", "something else")
	create(t, forkOf(ns, "f", head, ""))
	eventually(t, "the fork says what it waits for", func() bool {
		ready := meta.FindStatusCondition(chatIn(t, ns, "f").Status.Conditions, v1beta1.ConditionReady)
		return ready != nil && strings.Contains(ready.Message, "Message q0 of chat c was edited")
	})
	edit(t, ns, "q0", "hello")
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f"+head[1:], 4)
}

func TestForkBeforeClearedContextHasItsContext(t *testing.T) {
	ns := parallel(t)
	create(t, newChat(ns, "c", ""))
	head := turns(t, ns, 1)
	annotate(t, ns, "c", v1beta1.AnnotationClear, "now")
	eventually(t, "the context is cleared", func() bool { return chatIn(t, ns, "c").Status.History.ContextStart == 2 })
	newest := turns(t, ns, 1)
	create(t, forkOf(ns, "f", head, ""))
	waitForHistory(t, ns, "f", v1beta1.ChatWaiting, "f"+head[1:], 2)
	check.Equal(t, "context of the fork begins at", int64(0), chatIn(t, ns, "f").Status.History.ContextStart)
	second := forkOf(ns, "g", newest, "")
	create(t, second)
	waitForHistory(t, ns, "g", v1beta1.ChatWaiting, "g"+newest[1:], 4)
	check.Equal(t, "context of the other fork begins at", int64(2), chatIn(t, ns, "g").Status.History.ContextStart)
	check.Equal(t, "title", chatIn(t, ns, "c").Status.Title, chatIn(t, ns, "g").Status.Title)
}
