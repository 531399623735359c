// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// note is a message for people alone.
func note(ns, chat, name string) *v1beta1.ChatMessage {
	m := say(ns, chat, name)
	m.Spec.Visibility = v1beta1.VisibleToUsers
	return m
}

// waitForNote waits until a note has its place before the message of that index.
func waitForNote(t *testing.T, ns, name string, before int64) {
	t.Helper()
	waitForMessage(t, ns, name, metav1.ConditionTrue, v1beta1.ReasonNoted)
	st := messageIn(t, ns, name).Status
	if st.State != v1beta1.MessageNoted || st.Index == nil || *st.Index != before || st.Parent != "" {
		t.Errorf("note %s is %+v, want one before message %d", name, st, before)
	}
}

// Security (an author of messages): cannot start, stop, queue or fail a turn by a note, nor have it pass for the chat's
// prompt. Also TestANoteDecidesNothing, TestANoteIsNoPrompt of test/integration.
func TestNoteJoinsHistoryWithoutQueueing(t *testing.T) {
	ns := parallel(t)
	create(t, note(ns, "c", "early"))
	waitForMessage(t, ns, "early", metav1.ConditionUnknown, v1beta1.ReasonChatNotFound)
	chat := newChat(ns, "c", "first")
	chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
	create(t, chat)
	assigned(t, ns, "c", 1, 1)
	queued(t, ns, "c", "queued")
	create(t, note(ns, "c", "amid")) // The queue is full.
	waitForNote(t, ns, "amid", 1)
	if got := chatIn(t, ns, "c").Status; len(got.Queue) != 1 || got.Turn.Message != "c-prompt" || got.History.Length != 1 {
		t.Errorf("the note changed the chat: %+v", got)
	}
	answers(t, chatIn(t, ns, "c"), chattest.Says("Fine."))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "queued", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	create(t, note(ns, "c", "late"))
	waitForNote(t, ns, "late", 4)
	check.Equal(t, "the earlier note has moved to", 1, *messageIn(t, ns, "amid").Status.Index)
	remove(t, chatIn(t, ns, "c"))
	for _, name := range []string{"early", "amid", "late"} {
		waitGone(t, ns, name)
	}
}

func TestANoteDecidesNothing(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "c", "first"), chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	waitForPhase(t, ns, "c", v1beta1.ChatError)
	before := chatIn(t, ns, "c").Status
	create(t, note(ns, "c", "n"))
	waitForNote(t, ns, "n", 1)
	edit(t, ns, "n", "Who has the key?")
	eventually(t, "the edit is seen", func() bool { return messageIn(t, ns, "n").Status.ObservedGeneration == 2 })
	waitForNote(t, ns, "n", 1)
	remove(t, messageIn(t, ns, "n"))
	waitGone(t, ns, "n")
	create(t, note(ns, "c", "again"))
	waitForNote(t, ns, "again", 1)
	after := chatIn(t, ns, "c").Status
	if after.Phase != before.Phase || after.History != before.History || after.Turn.Message != before.Turn.Message ||
		after.LastError == nil || len(after.Queue) != 0 {
		t.Errorf("the chat was %+v and is %+v", before, after)
	}
}

// Whoever may delete messages may create others under their names.
func TestANoteTakesNoMessagesPlace(t *testing.T) {
	ns := parallel(t)
	answered(t, ns, "second", "third")
	create(t, say(ns, "c", "running"))
	assigned(t, ns, "c", 7, 1)
	queued(t, ns, "c", "queued")

	replace := func(name string) {
		remove(t, messageIn(t, ns, name))
		create(t, note(ns, "c", name))
	}
	replace("queued")
	eventually(t, "nothing is queued", func() bool { return len(queueOf(t, ns, "c")) == 0 })
	replace("running")
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-5-1", 6)
	replace("second")
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
	for _, name := range []string{"queued", "running", "second"} {
		waitForMessage(t, ns, name, metav1.ConditionTrue, v1beta1.ReasonNoted)
	}
	check.Equal(t, "the turn is that of", "c-prompt", chatIn(t, ns, "c").Status.Turn.Message)
}

func TestANoteIsNoPrompt(t *testing.T) {
	ns := parallel(t)
	create(t, note(ns, "c", "c-prompt"))
	create(t, newChat(ns, "c", "first"))
	waitForReady(t, ns, "c", metav1.ConditionFalse, v1beta1.ReasonPromptNameConflict)
}

// Security (an author of messages): cannot change visibility afterwards: neither hide a message that was sent, nor turn
// a note into one.
func TestVisibilityCannotChange(t *testing.T) {
	ns := parallelBare(t)
	for was, becomes := range map[v1beta1.MessageVisibility]string{
		"": `"Users"`, v1beta1.VisibleToAll: `"Model"`, v1beta1.VisibleToModel: "null", v1beta1.VisibleToUsers: `"All"`,
	} {
		m := say(ns, "c", "m-"+strings.ToLower(string(was)))
		if m.Spec.Visibility = was; was == "" {
			m.Name = "m"
		}
		create(t, m)
		change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"visibility":`+becomes+`}}`))
		err := cluster.Client.Patch(t.Context(), m, change)
		if err == nil || !strings.Contains(err.Error(), "visibility cannot change: create another message") {
			t.Errorf("from %q to %s: %v", was, becomes, err)
		}
	}
	m := say(ns, "c", "said")
	create(t, m)
	patch(t, m, `{"spec":{"visibility":"All"}}`) // It says what was so before.
}
