// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// cut takes the messages from an index on out of the history, as the operator does.
func (w *world) cut(index int64) {
	h := &w.chat.Status.History
	for ; h.Length > index; h.Length-- {
		committed, err := Commit(w.chat, w.messages[h.Head], PlaceOf(w.chat, h.Head, h.Length-1, nil))
		if err != nil {
			panic(err)
		}
		h.Head = committed.Parent
	}
	h.Version++
	w.chat.Status.Generation, w.chat.Status.Queue, w.chat.Status.RequiresAction = nil, nil, nil
}

// edit gives a committed User message another content, and begins its turn again.
func (w *world) edit(name, content string) {
	committed, err := Commit(w.chat, w.messages[name], PlaceOf(w.chat, name, *w.messages[name].Status.Index, nil))
	if err != nil {
		panic(err)
	}
	w.cut(committed.Index)
	w.chat.Status.History.Version-- // one write does both
	message := w.messages[name]
	w.user(name, false)
	message.Spec.Content = content
	w.messages[name] = message // its own status follows later
	w.attempt(1)
}

// talk is a chat that was asked first, and then second, and answered both: c-1-1 and c-3-1.
func (w *world) talk() {
	for _, name := range []string{"first", "second"} {
		w.user(name, true)
		w.attempt(1)
		w.say(2)
		w.step(v1beta1.RoleAssistant)
	}
}

// holds are the messages that a client holds who throws everything away at a reset.
func holds(t *testing.T, events []stream.Event) (names []string) {
	t.Helper()
	held := map[int64]string{}
	for _, e := range events {
		switch e.Name {
		case stream.EventHistoryReset:
			clear(held)
		case stream.EventMessage:
			m := decode[stream.MessageCommitted](t, e)
			text := m.Message.Content
			if text == "" {
				text = *m.Message.Parts[0].Text
			}
			if held[m.Index] != "" {
				t.Errorf("message %d came twice without a reset", m.Index)
			}
			held[m.Index] = text
		}
	}
	for i := range int64(len(held)) {
		names = append(names, held[i])
	}
	return names
}

// settled waits until the newest status is of a version, and all that the chat has was sent.
func (c *client) settled(version int64) []stream.Event {
	c.t.Helper()
	return c.wait("the status of the last version", func(events []stream.Event) bool {
		return slices.ContainsFunc(events, func(e stream.Event) bool {
			return e.Name == stream.EventStatus && decode[stream.Status](c.t, e).HistoryVersion == version
		})
	})
}

// cuts are ways for a history to lose messages, each from the talk of two questions.
var cuts = map[string]struct {
	do   func(w *world)
	want []string
}{
	"the first question is edited": {func(w *world) { w.edit("first", "else") }, []string{"else"}},
	"the last question is edited": {
		func(w *world) { w.edit("second", "else") },
		[]string{"say something about first", "said by c-1-1", "else"},
	},
	"an edit that is answered before anybody looks": {
		func(w *world) { w.edit("second", "else"); w.step(v1beta1.RoleAssistant) },
		[]string{"say something about first", "said by c-1-1", "else", "said by c-5-1"},
	},
	"the question under way is edited twice": {
		func(w *world) { w.edit("second", "else"); w.settle(); w.edit("second", "no, this") },
		[]string{"say something about first", "said by c-1-1", "no, this"},
	},
	"a reply is deleted and generated again": {
		func(w *world) { w.cut(1); delete(w.messages, "c-1-1"); w.attempt(1); w.step(v1beta1.RoleAssistant) },
		[]string{"say something about first", "said by c-5-1"},
	},
	"the end is deleted": {
		func(w *world) { w.cut(2); delete(w.messages, "second") },
		[]string{"say something about first", "said by c-1-1"},
	},
	"everything is deleted": {func(w *world) { w.cut(0); clear(w.messages) }, nil},
}

func TestTruncatedHistoryIsResetAndResent(t *testing.T) {
	for name, tt := range cuts {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.change(w.talk)
			c := w.follow(t, Position{}, 0)
			c.settled(4)
			w.change(func() { tt.do(w) })
			got := c.settled(w.chat.Status.History.Version)
			if n := count(got, stream.EventHistoryReset); n != 1 {
				t.Errorf("%d resets in %v", n, show(got))
			}
			check.Equal(t, "the client holds", tt.want, holds(t, got))
		})
	}
}

func TestEditOfNewestMessageIsResent(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("first", true); w.attempt(1); w.say(2) })
	c := w.follow(t, Position{}, 0)
	c.waitID("1.1.2.1")
	w.change(func() { w.edit("first", "else"); w.say(1) })
	got := c.waitID("2.1.1.1")
	want := []string{"1.0.1", stream.EventQueueUpdate, stream.EventStatus, "1.1.1.1", "1.1.2.1",
		stream.EventHistoryReset, "2.0.1",
		stream.EventQueueUpdate, stream.EventStatus, "2.1.1.1"}
	check.Equal(t, "events", want, show(got))
	check.Equal(t, "the client holds", []string{"else"}, holds(t, got))
}

func TestClientResumingAcrossTruncationMissesNothing(t *testing.T) {
	for name, tt := range cuts {
		for id := range strings.FieldsSeq("4.0.4 3.1.1.3 3.0.3") { // behind the last message, in its parts, before it
			t.Run(name+" from "+id, func(t *testing.T) {
				w := newWorld()
				w.change(w.talk)
				w.change(func() { tt.do(w) })
				got := w.follow(t, at(t, id), 0).settled(w.chat.Status.History.Version)
				if got[0].Name != stream.EventHistoryReset || count(got, stream.EventHistoryReset) != 1 {
					t.Errorf("got %v", show(got))
				}
				check.Equal(t, "the client holds", tt.want, holds(t, got))
			})
		}
	}
}

func TestWhatTheClientHoldsBeforeTheCutStays(t *testing.T) {
	w := newWorld()
	w.change(w.talk)
	w.change(func() { w.edit("second", "else") })
	for id := range strings.FieldsSeq("1.0.1 2.0.2 1.1.1.1") {
		got := w.follow(t, at(t, id), 0).waitID("5.0.3")
		if count(got, stream.EventHistoryReset) > 0 {
			t.Errorf("from %s: %v", id, show(got))
		}
	}
}

func TestAVersionWithoutAMessageResetsNothing(t *testing.T) {
	w := newWorld()
	w.change(w.talk)
	c, now := w.follow(t, Position{}, 0), w.follow(t, Position{Now: true}, 0)
	c.settled(4)
	now.settled(4)
	w.change(func() { w.chat.Status.History.Version++; w.chat.Status.History.ContextStart = 4 }) // the context was cleared
	for _, got := range [][]stream.Event{c.settled(5), now.settled(5)} {
		if count(got, stream.EventHistoryReset) > 0 {
			t.Errorf("got %v", show(got))
		}
	}
	for id := range strings.FieldsSeq("4.0.4 3.1.2.3") {
		if got := w.follow(t, at(t, id), 0).settled(5); count(got, stream.EventHistoryReset) > 0 {
			t.Errorf("from %s: %v", id, show(got))
		}
	}
}

func TestInterruptedReplyIsCommittedAndEndsPreview(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(w *world)
		want []string
	}{
		"something was said": {
			func(w *world) {
				w.step(v1beta1.RoleAssistant)
				w.messages["c-1-1"].Spec.Generation.Outcome = v1beta1.OutcomeInterrupted
			},
			[]string{"2.0.2", stream.EventStatus},
		},
		"nothing is kept": {
			func(w *world) { w.chat.Status.History.Version++; w.chat.Status.Generation = nil },
			[]string{stream.EventPreviewReset, stream.EventStatus},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.change(func() { w.user("first", true); w.attempt(1); w.say(1) })
			c := w.follow(t, Position{}, 0)
			c.waitID("1.1.1.1")
			w.change(func() { w.chat.Status.Phase = v1beta1.ChatInterrupting })
			c.wait("the interruption", func(events []stream.Event) bool { return count(events, stream.EventStatus) == 2 })
			w.change(func() { w.say(1) }) // its last words
			before := len(c.waitID("1.1.2.1"))
			w.change(func() { tt.end(w); w.chat.Status.Phase = v1beta1.ChatWaiting })
			check.Equal(t, "events", tt.want, show(c.settled(2)[before:]))
		})
	}
}

// act lets the turn wait for people, as it does once a step with calls is committed.
func (w *world) act(calls ...v1beta1.PendingToolCall) {
	w.chat.Status.Phase = v1beta1.ChatRequiresAction
	w.chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{Message: w.chat.Status.History.Head,
		Deadline: metav1.NewTime(time.Unix(1_800_000_000, 0)), ToolCalls: calls}
}

func TestRequiredActionIsSentOnceAndPerDecision(t *testing.T) {
	w := newWorld()
	call := v1beta1.PendingToolCall{ID: "call_1", Name: "open_ticket", Input: `{"title":"CNI down"}`,
		Kind: v1beta1.RequiresClient}
	w.change(func() {
		w.user("first", true)
		w.attempt(1)
		w.step(v1beta1.RoleAssistant)
		w.act(call)
		w.chat.Status.LastError = &v1beta1.LastError{
			GenerationError: v1beta1.GenerationError{Reason: v1beta1.ErrorOverloaded}}
	})
	c := w.follow(t, Position{}, 0)
	got := c.waitName(stream.EventRequiresAction)
	check.Equal(t, "events", []string{"1.0.1", "2.0.2", stream.EventQueueUpdate, stream.EventStatus, stream.EventError,
		stream.EventRequiresAction}, show(got))
	a := decode[stream.RequiresAction](t, got[len(got)-1])
	if a.HistoryVersion != 2 || a.Deadline.Unix() != 1_800_000_000 || a.Message != "c-1-1" ||
		!cmp.Equal(a.ToolCalls, []v1beta1.PendingToolCall{call}) {
		t.Errorf("got %+v", a)
	}
	w.change(func() {
		w.chat.Status.RequiresAction = w.chat.Status.RequiresAction.DeepCopy()
		w.chat.Status.RequiresAction.ToolCalls[0].Decision = &v1beta1.ToolDecision{ID: "call_1",
			Decision: v1beta1.DecisionApprove, Approval: "a"}
		w.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "next"}}
	})
	got = c.wait("the decision", func(events []stream.Event) bool {
		return count(events, stream.EventQueueUpdate) == 2 && count(events, stream.EventRequiresAction) == 2
	})
	a = decode[stream.RequiresAction](t, got[len(got)-1])
	if d := a.ToolCalls[0].Decision; a.HistoryVersion != 2 || d == nil || d.Decision != v1beta1.DecisionApprove {
		t.Errorf("got %+v", a)
	}
	w.change(func() { w.chat.Status.Queue = nil })
	c.wait("the queue", func(events []stream.Event) bool { return count(events, stream.EventQueueUpdate) == 3 })
	w.change(func() { w.chat.Status.RequiresAction = nil; w.chat.Status.History.Version++; w.attempt(1) })
	w.change(func() { w.step(v1beta1.RoleAssistant); w.act(call) })
	got = c.wait("another action", func(events []stream.Event) bool {
		return count(events, stream.EventRequiresAction) >= 3
	})
	if n := count(got, stream.EventRequiresAction); n != 3 {
		t.Errorf("%d actions in %v", n, show(got))
	}
}

func TestClientResultsAreSentBeforeTheirStatusUpdate(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("first", true); w.attempt(1); w.step(v1beta1.RoleAssistant); w.act() })
	c := w.follow(t, Position{}, 0)
	c.waitID("2.0.2")
	w.change(func() {
		h := &w.chat.Status.History
		w.chat.Status.Turn = w.chat.Status.Turn.DeepCopy()
		w.chat.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "results", Parent: h.Head, Position: h.Length,
			HistoryVersion: h.Version + 1}}
		h.Version, h.Head, h.Length = h.Version+1, "results", h.Length+1
		w.holds(chattest.Brings("c", "results", v1beta1.ToolResult{ID: "call_1", Output: `{"number":4711}`}))
		w.chat.Status.RequiresAction = nil
		w.attempt(1)
		w.say(1)
	})
	got := c.waitID("3.1.1.3")
	m := decode[stream.MessageCommitted](t, got[slices.IndexFunc(got, func(e stream.Event) bool {
		return short(e.ID) == "3.0.3"
	})])
	if m.Message.Role != v1beta1.RoleTool || m.Message.Parts[0].ToolResult.Output != `{"number":4711}` ||
		count(got, stream.EventHistoryReset) > 0 {
		t.Errorf("got %+v in %v", m, show(got))
	}
}

func TestMessageLeavingWhileSentHoldsNothingUp(t *testing.T) {
	w := newWorld()
	w.change(func() {
		w.user("first", true)
		w.messages["first"].Spec.Content = strings.Repeat("x", keepBytes+1) // too much to be kept while the history is walked
		w.settle()
	})
	gets := 0
	w.onGet = func(Place) {
		if gets++; gets == 2 {
			w.messages["first"].Status.State = v1beta1.MessageSuperseded
			w.chat = w.chat.DeepCopy()
			w.chat.Status.Turn = nil
			w.chat.Status.History = v1beta1.HistoryStatus{Version: 2}
		}
	}
	w.mu.Lock()
	w.chat.Status.Turn = nil
	w.mu.Unlock()
	c := w.follow(t, Position{}, 0)
	c.settled(1)
	w.change(func() {})
	if got := c.settled(2); len(holds(t, got)) > 0 {
		t.Errorf("got %v", show(got))
	}
}
