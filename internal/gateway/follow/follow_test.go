// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// story is a chat with everything in it: a lost attempt, tools, a reply that promotes a queued message in the same
// version, a failed turn, and one more. Each chapter ends with an event that every client gets.
var story = []struct {
	tell  func(w *world)
	until string
}{
	{func(w *world) { w.user("q1", false); w.attempt(1) }, "1.0.1"},
	{func(w *world) { w.say(3) }, "1.1.3.1"},
	{func(w *world) { w.attempt(2); w.say(2) }, "1.2.2.1"},
	{func(w *world) { w.settle(); w.step(v1beta1.RoleAssistant); w.attempt(1) }, "2.0.2"},
	{func(w *world) { w.say(1) }, "2.1.1.2"},
	{func(w *world) { w.step(v1beta1.RoleTool); w.attempt(1); w.say(2) }, "3.1.2.3"},
	{func(w *world) { w.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "q2"}} }, ""},
	{func(w *world) {
		w.step(v1beta1.RoleAssistant)
		w.chat.Status.History.Version-- // one write commits both
		w.user("q2", true)
		w.chat.Status.Queue = nil
		w.attempt(1)
	}, "4.0.5"},
	{func(w *world) { w.say(2) }, "4.1.2.5"},
	{func(w *world) {
		w.chat.Status.Generation = nil
		w.chat.Status.LastError = &v1beta1.LastError{
			GenerationError: v1beta1.GenerationError{Reason: v1beta1.ErrorOverloaded}}
	}, ""},
	{func(w *world) { w.user("q3", false); w.attempt(1); w.say(1) }, "5.1.1.6"},
	{func(w *world) { w.step(v1beta1.RoleAssistant) }, "6.0.7"},
}

var storyIDs = strings.Fields("1.0.1 1.1.1.1 1.1.2.1 1.1.3.1 1.2.1.1 1.2.2.1 2.0.2 2.1.1.2 3.0.3 3.1.1.3 3.1.2.3 " +
	"4.0.4 4.0.5 4.1.1.5 4.1.2.5 5.0.6 5.1.1.6 6.0.7")

func tell(w *world, clients ...*client) {
	for _, chapter := range story {
		w.change(func() { chapter.tell(w) })
		if chapter.until == "" {
			continue
		}
		for _, c := range clients {
			c.waitID(chapter.until)
		}
	}
}

func TestClientCutAtEveryEventMissesNothing(t *testing.T) {
	w := newWorld()
	whole := w.follow(t, Position{}, 0)
	var cut []*client
	for n := 1; n <= 5; n++ {
		cut = append(cut, w.follow(t, Position{}, n))
	}
	tell(w, append(cut, whole)...)
	want := numbered(whole.waitID("6.0.7"))
	check.Equal(t, "the whole story", storyIDs, show(want))
	for _, c := range cut {
		check.Equal(t, fmt.Sprintf("cut after every %d events", c.cutAfter), want, numbered(c.waitID("6.0.7")))
	}
}

func TestClientResumesFromAnyPositionAfterEnd(t *testing.T) {
	w := newWorld()
	tell(w, w.follow(t, Position{}, 0))
	all := []string{"1.0.1", "2.0.2", "3.0.3", "4.0.4", "4.0.5", "5.0.6", "6.0.7"}
	for _, id := range append([]string{""}, storyIDs...) {
		t.Run("from "+id, func(t *testing.T) {
			from := at(t, id)
			var want []string
			for i, message := range all {
				if from.Attempt == 0 && int64(i) >= from.Number || from.Attempt > 0 && at(t, message).Version > from.Version {
					want = append(want, message)
				}
			}
			got := w.follow(t, from, 0).waitName(stream.EventStatus)
			check.Equal(t, "events", want, show(numbered(got)))
			// The attempts 1.1 and 4.1 were given up; what the others yielded is in the history.
			wantVoid := 0
			if strings.HasPrefix(id, "1.1.") || strings.HasPrefix(id, "4.1.") {
				wantVoid = 1
			}
			check.Equal(t, "preview resets", wantVoid, count(got, stream.EventPreviewReset))
			if count(got, stream.EventHistoryReset) > 0 {
				t.Error("the history was reset")
			}
		})
	}
}

func TestTheOrderIsMessagesQueueStatusErrorParts(t *testing.T) {
	w := newWorld()
	w.change(func() {
		w.user("q1", false)
		w.attempt(1)
		w.say(1)
		w.chat.Status.LastError = &v1beta1.LastError{
			GenerationError: v1beta1.GenerationError{Reason: v1beta1.ErrorOverloaded}}
	})
	got := show(w.follow(t, Position{}, 0).waitID("1.1.1.1"))
	check.Equal(t, "events", []string{"1.0.1", stream.EventQueueUpdate, stream.EventStatus, stream.EventError,
		"1.1.1.1"}, got)
}

func TestUnknownPositionResetsTheHistory(t *testing.T) {
	for _, id := range []string{"7.0.7", "6.0.8", "5.0.7", "3.0.1", "9.1.4.7"} {
		t.Run(id, func(t *testing.T) {
			w := newWorld()
			tell(w, w.follow(t, Position{}, 0))
			got := w.follow(t, at(t, id), 0).waitID("6.0.7")
			if got[0].Name != stream.EventHistoryReset || short(got[1].ID) != "1.0.1" {
				t.Errorf("got %v, want a reset and then everything", show(got))
			}
		})
	}
}

func TestRecreatedChatResetsHistory(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("q1", false); w.attempt(1); w.say(2) })
	c := w.follow(t, Position{}, 0)
	c.waitID("1.1.2.1")
	w.change(func() {
		w.chat = newChat("uid-2")
		w.user("again", false)
		w.attempt(1)
		w.say(3)
	})
	got := c.waitID("1.1.3.1")
	want := []string{"1.0.1", stream.EventQueueUpdate, stream.EventStatus, "1.1.1.1", "1.1.2.1",
		stream.EventHistoryReset, "1.0.1", stream.EventQueueUpdate, stream.EventStatus, "1.1.1.1", "1.1.2.1", "1.1.3.1"}
	check.Equal(t, "events", want, show(got))
}

func TestAbandonedAttemptResetsPreview(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("q1", false); w.attempt(1); w.say(2) })
	c := w.follow(t, Position{}, 0)
	c.waitID("1.1.2.1")
	w.change(func() { w.attempt(2) })
	got := c.waitName(stream.EventPreviewReset)
	for _, e := range got {
		if e.Name == stream.EventPreviewReset {
			if p := decode[stream.PreviewReset](t, e); p != (stream.PreviewReset{HistoryVersion: 1, Attempt: 1}) {
				t.Errorf("got %+v", p)
			}
		}
	}
	w.change(func() { w.say(1); w.step(v1beta1.RoleAssistant) })
	check.Equal(t, "preview resets", 1, count(c.waitID("2.0.2"), stream.EventPreviewReset))
}

func TestFromNowLeavesOutWhatWasCommitted(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("q1", false); w.attempt(1); w.say(2) })
	c := w.follow(t, Position{Now: true}, 0)
	c.waitID("1.1.2.1")
	w.change(func() { w.step(v1beta1.RoleAssistant) })
	got := numbered(c.waitID("2.0.2"))
	check.Equal(t, "events", []string{"1.1.0.1", "1.1.1.1", "1.1.2.1", "2.0.2"}, show(got))
}

func TestFromNowMissesNothingWhileDisconnected(t *testing.T) {
	talk := func(w *world) { w.talk() }
	for name, c := range map[string]struct {
		before, meanwhile func(*world)
		want              []string
		resets            int
	}{
		"an empty chat": {func(*world) {}, talk, []string{"1.0.1", "2.0.2", "3.0.3", "4.0.4"}, 0},
		"a chat at rest": {talk, func(w *world) { w.user("next", true); w.attempt(1); w.step(v1beta1.RoleAssistant) },
			[]string{"5.0.5", "6.0.6"}, 0},
		"an attempt that runs": {func(w *world) { w.user("q", true); w.attempt(2); w.say(2) }, func(w *world) { w.say(1) },
			[]string{"1.2.1.1", "1.2.2.1", "1.2.3.1"}, 0},
		"an attempt that ends": {func(w *world) { w.user("q", true); w.attempt(1); w.say(2) },
			func(w *world) { w.step(v1beta1.RoleAssistant) }, []string{"2.0.2"}, 0},
		"a version without a message": {func(w *world) { w.talk(); w.chat.Status.History.Version = 9 },
			func(w *world) { w.user("next", true) }, []string{"10.0.5"}, 0},
		"a history that was cut": {talk, func(w *world) {
			w.chat.Status.History = v1beta1.HistoryStatus{Version: 5}
			w.user("next", true)
		}, []string{"6.0.1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.change(func() { c.before(w) })
			first := w.follow(t, Position{Now: true}, 0).waitName(stream.EventStatus)
			status := slices.IndexFunc(first, func(e stream.Event) bool { return e.Name == stream.EventStatus })
			from, err := ParsePosition(first[status].ID)
			check.OK(t, err)
			check.Equal(t, "the status has an id", true, from.Chat != "")
			w.change(func() { c.meanwhile(w) })
			got := w.follow(t, from, 0).waitID(c.want[len(c.want)-1])
			check.Equal(t, "events", c.want, show(numbered(got)))
			check.Equal(t, "resets", c.resets, count(got, stream.EventHistoryReset))
		})
	}
}

func TestAnErrorIsToldOncePerHistoryVersion(t *testing.T) {
	w := newWorld()
	fail := func() {
		w.chat.Status.LastError = &v1beta1.LastError{
			GenerationError: v1beta1.GenerationError{Reason: v1beta1.ErrorOverloaded}}
	}
	w.change(func() { w.user("q1", false); fail() })
	c := w.follow(t, Position{}, 0)
	c.waitName(stream.EventError)
	w.change(func() { w.chat.Status.Model = "m"; fail() })
	w.change(func() { w.settle(); w.user("q2", true); fail() })
	got := c.wait("a second error", func(events []stream.Event) bool { return count(events, stream.EventError) == 2 })
	if e := decode[stream.Error](t, got[len(got)-1]); e.HistoryVersion != 2 || e.Reason != v1beta1.ErrorOverloaded {
		t.Errorf("got %+v", e)
	}
}

func TestFailedAttemptSendsOneRetryAndResetsPreview(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("q1", false); w.attempt(1); w.say(2) })
	c := w.follow(t, Position{}, 0)
	c.waitID("1.1.2.1")
	retry := func(attempt int32) {
		w.chat.Status.Generation = nil
		w.chat.Status.Retry = &v1beta1.RetryStatus{Attempt: attempt, Reason: v1beta1.ErrorOverloaded, ModelConfig: "next"}
	}
	w.change(func() { retry(1) })
	c.waitName(stream.EventRetry)
	w.change(func() { w.chat.Status.Model = "m" })
	w.change(func() { w.chat.Status.Retry = nil; w.attempt(2) })
	w.change(func() { retry(2) })
	got := c.wait("a second retry", func(events []stream.Event) bool { return count(events, stream.EventRetry) == 2 })
	if r := decode[stream.Retry](t, got[len(got)-1]); r.HistoryVersion != 1 || r.Attempt != 2 ||
		r.Reason != v1beta1.ErrorOverloaded || r.ModelConfig != "next" {
		t.Errorf("got %+v", r)
	}
	check.Equal(t, "previews are void", 1, count(got, stream.EventPreviewReset))
}

func TestADeletedChatEndsTheStream(t *testing.T) {
	w := newWorld()
	c := w.follow(t, Position{}, 0)
	c.waitName(stream.EventStatus)
	w.change(func() { w.chat = nil })
	if got := c.waitName(stream.EventDeleted); string(got[len(got)-1].Data) != "{}" {
		t.Errorf("data %s", got[len(got)-1].Data)
	}
	if err := <-c.done; err != nil {
		t.Errorf("the stream ended in %v", err)
	}
}

func TestAbsentAPIServerDelaysMessages(t *testing.T) {
	w := newWorld()
	w.change(func() { w.failures = 3; w.user("q1", false); w.attempt(1); w.say(1) })
	got := w.follow(t, Position{}, 0).waitID("1.1.1.1")
	check.Equal(t, "events", []string{"1.0.1", "1.1.1.1"}, show(numbered(got)))
}

func TestMissingMessageHidesOnlyEarlierMessages(t *testing.T) {
	w := newWorld()
	tell(w, w.follow(t, Position{}, 0))
	w.change(func() { delete(w.messages, "c-2-1") })
	got := w.follow(t, Position{}, 0).waitName(stream.EventStatus)
	check.Equal(t, "events", strings.Fields("4.0.4 4.0.5 5.0.6 6.0.7"), show(numbered(got)))
}

func TestMessagesAreSentWithoutWhatOnlyProvidersUnderstand(t *testing.T) {
	w := newWorld()
	tell(w, w.follow(t, Position{}, 0))
	for _, e := range w.follow(t, Position{}, 0).waitID("6.0.7") {
		if short(e.ID) != "2.0.2" {
			continue
		}
		m := decode[stream.MessageCommitted](t, e)
		if m.Message.Name != "c-1-2" || m.Message.Attempt != 2 || m.Index != 1 ||
			*m.Message.Parts[0].Text != "said by c-1-2" {
			t.Errorf("got %+v", m)
		}
		check.Lacks(t, string(e.Data), "opaque")
	}
}

func TestMessageOfAnotherChatIsNotTold(t *testing.T) {
	w := newWorld()
	w.change(func() { w.user("q1", false) })
	w.change(func() { w.messages["q1"].Spec.ChatRef.Name = "other" })
	if got := numbered(w.follow(t, Position{}, 0).waitName(stream.EventStatus)); len(got) > 0 {
		t.Errorf("got %v", show(got))
	}
}

func TestReplacedChatIsToldToAReturningClient(t *testing.T) {
	for _, id := range []string{"1.0.1", "2.0.2", "1.1.1.1"} {
		t.Run(id, func(t *testing.T) {
			w := newWorld()
			w.change(func() { // It has the same versions, lengths and attempts as the one that the client knew.
				w.chat = newChat("uid-2")
				w.user("q1", true)
				w.attempt(1)
				w.say(2)
				w.step(v1beta1.RoleAssistant)
			})
			got := w.follow(t, at(t, id), 0).waitName(stream.EventStatus)
			want := []string{stream.EventHistoryReset, "1.0.1", "2.0.2", stream.EventQueueUpdate, stream.EventStatus}
			check.Equal(t, "events", want, show(got))
			if first, before := got[1].ID, at(t, "1.0.1").String(); first == before {
				t.Errorf("both chats have the event %s", first)
			}
		})
	}
}

func TestPositionsAreReadBack(t *testing.T) {
	chat := identity("6b0f7b3e-93a1-4f0e-8f63-1d6f43a2f4a5")
	for _, p := range []Position{{Chat: chat, Version: 7, Attempt: 1, Number: 42},
		{Chat: chat, Version: 7, Attempt: 1, Number: 42, Length: 3}, {Chat: chat, Version: 12, Number: 3}} {
		if got, err := ParsePosition(p.String()); err != nil || got != p {
			t.Errorf("%v was read as %v, %v", p, got, err)
		}
	}
	for _, id := range []string{"7", "7.0.2", chat, chat + ".7", chat + ".7.1", chat + ".7.1.x", chat + ".-7.1.2.1",
		chat + ".7.0.2.3", chat + ".7.1.2",
		chat + ".7.1.2.3.4", chat + ".7.2147483648.1.1", "...", "ABCDEF01.7.0.2", "abcdef0.7.0.2",
		fmt.Sprint(chat, ".", 1<<31, ".1.1.")} {
		if got, err := ParsePosition(id); err == nil {
			t.Errorf("%q was read as %v", id, got)
		}
	}
}
