// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// note is a message for people alone, before the message of that index.
func (w *world) note(name string, before, generation int64) {
	w.said(name, chattest.Content("note "+name), func(m *v1beta1.ChatMessage) {
		m.Generation, m.Spec.Visibility = generation, v1beta1.VisibleToUsers
		m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageNoted, ChatUID: string(w.chat.UID), Index: &before}
	})
}

// transcriptOf is the messages and the notes of events, in their order.
func transcriptOf(t *testing.T, events []stream.Event) (told []string) {
	t.Helper()
	for _, e := range events {
		switch e.Name {
		case stream.EventMessage:
			told = append(told, short(e.ID))
		case stream.EventHistoryReset:
			told = append(told, e.Name)
		case stream.EventNote:
			n := decode[stream.Note](t, e)
			if n.Message.Visibility != v1beta1.VisibleToUsers || n.Message.Content != "note "+n.Message.Name || e.ID != "" {
				t.Errorf("the note is %+v, its id %q", n, e.ID)
			}
			told = append(told, fmt.Sprintf("%s@%d/%d", n.Message.Name, n.Index, n.Generation))
		case stream.EventNoteDeleted:
			told = append(told, "no "+decode[stream.NoteDeleted](t, e).Name)
		}
	}
	return told
}

func (c *client) tells(want ...string) {
	c.t.Helper()
	got := transcriptOf(c.t, c.wait("the story", func(events []stream.Event) bool {
		return len(transcriptOf(c.t, events)) >= len(want)
	}))
	check.Equal(c.t, "events", want, got)
}

func TestNotesAreToldAtTheirPlaces(t *testing.T) {
	w := newWorld()
	w.change(func() {
		w.talk()
		w.note("late", 4, 1)
		w.note("first-of-all", 0, 1)
		w.note("amid", 2, 1)
		w.note("amid-too", 2, 3)
		w.note("behind-a-cut", 9, 1)
		w.said("unplaced", func(m *v1beta1.ChatMessage) { m.Spec.Visibility = v1beta1.VisibleToUsers })
		w.note("of-another-chat", 1, 1)
		w.messages["of-another-chat"].Status.ChatUID = "uid-0"
		w.failures = 1
	})
	w.follow(t, Position{}, 0).tells("first-of-all@0/1", "1.0.1", "2.0.2", "amid@2/1", "amid-too@2/3", "3.0.3", "4.0.4",
		"late@4/1", "behind-a-cut@9/1")
	// Who comes back is told the notes again, and no message.
	w.follow(t, at(t, "4.0.4"), 0).tells("first-of-all@0/1", "amid@2/1", "amid-too@2/3", "late@4/1", "behind-a-cut@9/1")
}

func TestNoteCreationEditAndDeletionAreStreamed(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("q1", true); w.attempt(1); w.note("old", 1, 1) })
	now, whole := w.follow(t, Position{Now: true}, 0), w.follow(t, Position{}, 0)
	now.waitName(stream.EventStatus)
	whole.waitName(stream.EventStatus)
	var come []string
	for _, step := range []struct {
		do   func()
		told string
	}{
		{func() { w.note("new", 1, 1) }, "new@1/1"},
		{func() { w.note("new", 1, 2) }, "new@1/2"},
		{func() { delete(w.messages, "old") }, "no old"},
		{func() { w.step(v1beta1.RoleAssistant) }, "2.0.2"},
	} {
		w.change(step.do)
		come = append(come, step.told)
		now.tells(come...)
		whole.tells(append([]string{"1.0.1", "old@1/1"}, come...)...)
	}
}

func TestAResetTellsTheNotesAgain(t *testing.T) {
	w := newWorld()
	w.change(func() { w.talk(); w.note("n", 2, 1) })
	c := w.follow(t, Position{}, 0)
	c.tells("1.0.1", "2.0.2", "n@2/1", "3.0.3", "4.0.4")
	w.change(func() { w.edit("first", "else") })
	c.tells("1.0.1", "2.0.2", "n@2/1", "3.0.3", "4.0.4", stream.EventHistoryReset, "5.0.1", "n@2/1")
}

// Whoever may delete messages can create a note under the name of one.
func TestANoteIsNoMessageOfTheHistory(t *testing.T) {
	w := newWorld()
	w.change(func() { w.talk(); w.messages["second"].Spec.Visibility = v1beta1.VisibleToUsers })
	got := w.follow(t, Position{}, 0).waitID("4.0.4")
	check.Equal(t, "events", []string{"4.0.4"}, transcriptOf(t, got))
}

// Security (an author of messages): can leave any number of notes, of 1 MiB each: a ResourceQuota of
// count/chatmessages.parley.dev limits them, and the gateway limits how much of them it holds at once.
func TestNotesUseSharedStreamMemory(t *testing.T) {
	w := newWorld()
	w.memory = NewMemory(2 << 20)
	w.change(func() { w.talk(); w.note("one", 2, 1); w.note("two", 4, 1) })
	w.follow(t, Position{}, 0).waitName(stream.EventStatus)
	if w.lent != 2 || !w.memory.isUnused() {
		t.Errorf("memory was acquired %d times for 2 notes, or is kept", w.lent)
	}
}
