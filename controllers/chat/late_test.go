// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

func (w *world) rec() {
	w.Helper()
	if _, err := w.reconcile(); err != nil {
		w.Fatal(err)
	}
}

func (w *world) msg(name string) *v1beta1.ChatMessage {
	w.Helper()
	return fakeapi.Read(w.T, w.Server, chattest.In("ns", chattest.User("c", name)))
}

// view writes the status that the message controller would write of the turn of the chat.
func (w *world) view(name string) {
	w.Helper()
	chat, m := w.chat(), w.msg(name)
	conditions.Commit(&m.Status, string(chat.UID), history.RecordedBy(chat, name))
	outcome := conditions.OutcomeOf(chat.Status.Turn, &chat.Status.Internal.Turn, nil)
	conditions.Message(&m.Status, conditions.OfTurn(outcome), m.Generation, now)
	if err := w.Direct.Status().Update(w.Context(), m); err != nil {
		w.Fatal(err)
	}
}

func (w *world) edit(name, content string) {
	w.Helper()
	m := w.msg(name)
	m.Spec.Content = content
	m.Generation++
	if err := w.Direct.Update(w.Context(), m); err != nil {
		w.Fatal(err)
	}
}

// passes lets the controller look at the chat so often.
func (w *world) passes(n int) {
	w.Helper()
	for range n {
		w.rec()
	}
}

// In these tests, statuses of messages are written only where view does it: they are late otherwise.
func TestAnsweredEditIsNoOtherEdit(t *testing.T) {
	w := newWorld(t)
	w.rec()
	w.answer()
	w.rec()
	w.view("u")
	w.edit("u", "other")
	w.passes(2) // The history is cut, and what left it put aside.
	w.say("v")
	w.rec()
	w.answer()
	w.passes(2) // u is answered and v begun, and the status of u tells of its first commit.
	if turn := w.chat().Status.Turn; turn.Message != "v" {
		t.Errorf("the turn is that of %s, and v is %s", turn.Message, w.msg("v").Status.State)
	}
}

func TestCutMessageIsNotTakenForNew(t *testing.T) {
	w := newWorld(t)
	w.rec()
	w.answer()
	w.rec()
	w.view("u")
	w.say("v")
	w.rec()
	reply := chattest.Answer(w.chat(), chattest.Calls("x"))
	reply.UID = types.UID(reply.Name)
	if err := w.Direct.Create(w.Context(), reply); err != nil {
		t.Fatal(err)
	}
	w.rec() // The turn of v continues after a step.
	w.edit("u", "other")
	w.passes(3)
	st, v := w.chat().Status, w.msg("v").Status
	if len(st.Queue) > 0 || st.Turn.Message != "u" || v.State != v1beta1.MessageSuperseded {
		t.Errorf("the turn is that of %s, the queue %v, and v is %q", st.Turn.Message, st.Queue, v.State)
	}
}

func TestEditIsSeenBeforeItsCommitIsReported(t *testing.T) {
	w := newWorld(t)
	w.rec()
	w.say("v")
	w.rec()
	w.answer()
	w.rec() // u is answered, and v begun.
	w.edit("u", "other")
	w.passes(2)
	if turn := w.chat().Status.Turn; turn.Message != "u" {
		t.Errorf("the turn is that of %s", turn.Message)
	}
}

func TestReopenedMessageStaysInTheHistory(t *testing.T) {
	w := newWorld(t)
	w.rec()
	w.answer()
	w.rec()
	w.view("u")
	w.say("v")
	m := w.msg("v")
	m.Status.ChatUID = "chat-uid"
	conditions.Supersede(m, now)
	if err := w.Direct.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.edit("v", "again")
	w.rec()
	w.memory.chains.forget(ofChat.NamespacedName) // As a restart does.
	w.rec()
	if st, v := w.chat().Status, w.msg("v").Status; st.Turn.Message != "v" || v.ObservedGeneration == 2 {
		t.Errorf("the turn is that of %s, and v is %s", st.Turn.Message, v.State)
	}
}

func TestMessageCreatedAgainIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.rec()
	w.answer()
	w.rec()
	w.view("u")
	w.say("v")
	w.rec()
	if err := w.Direct.Delete(t.Context(), w.msg("v")); err != nil {
		t.Fatal(err)
	}
	m := chattest.In("ns", chattest.User("c", "v", chattest.Defaulted))
	m.Generation, m.UID = 1, "v-second"
	if err := w.Direct.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.memory.chains.forget(ofChat.NamespacedName)
		w.passes(2)
	}
	tail, v := w.chat().Status.Internal.Tail, w.msg("v").Status
	if len(tail) != 1 || tail[0].UID != "v-second" || v.State == v1beta1.MessageSuperseded {
		t.Errorf("the tail is %+v, and v is %q", tail, v.State)
	}
}

func TestTakenMessageIsNotRejectedFromStaleView(t *testing.T) {
	for _, state := range []v1beta1.MessageState{v1beta1.MessageQueued, v1beta1.MessageCommitted} {
		w := newWorld(t)
		m := w.msg("u")
		m.Status.State = state
		check.OK(t, w.Direct.Status().Update(t.Context(), m))
		s := &scope{facts: plan.Facts{Chat: w.chat(), Now: now}}
		err := w.actuator.reject(t.Context(), s, plan.Rejection{Message: "u", Reason: v1beta1.ReasonQueueFull})
		check.Equal(t, "conflict, state", []any{true, state}, []any{apierrors.IsConflict(err), w.msg("u").Status.State})
	}
}
