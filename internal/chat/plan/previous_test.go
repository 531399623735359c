// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"reflect"
	"slices"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/chattest"
)

// wantPrevious wants the status to keep how the turn of the message ended.
func (w *world) wantPrevious(message string, result v1alpha1.TurnResult) {
	w.t.Helper()
	previous := w.chat.Status.Internal.PreviousTurn
	if previous == nil || previous.Message != message || previous.Result != result {
		w.t.Errorf("of the turn before the status keeps %+v, want that %s ended as %s", previous, message, result)
	}
}

// report makes the messages of the chat's turns say how these ended.
func (w *world) report(f *Facts, messages ...string) {
	f.Reported = map[string]int64{}
	for _, message := range messages {
		f.Reported[message] = recordOfMessage(&w.chat.Status, message).version()
	}
}

func TestTheNextTurnBeginsBeforeTheMessageOfTheLastOneSaysHowThatEnded(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).want("Waiting v2 c-1-1/2 - []")
	w.say("b").want("Running v3 b/3 1:GenerateAssistant []").wantPrevious("a", v1alpha1.TurnAnswered)
	if len(w.last.Replaced) != 0 {
		t.Errorf("the write waits for %+v", w.last.Replaced)
	}
	want := v1alpha1.PreviousTurnStatus{Message: "a", HistoryVersion: 1, ContentHash: "hash of a",
		Result: v1alpha1.TurnAnswered}
	if got := *w.chat.Status.Internal.PreviousTurn; got != want {
		t.Errorf("kept %+v, want %+v", got, want)
	}
	// Nothing is written for that alone.
	before := w.chat.Status
	if w.pass(func(f *Facts) { w.report(f, "a") }); !reflect.DeepEqual(before, w.chat.Status) {
		t.Errorf("a write just to forget: %+v", w.chat.Status)
	}
	w.pass(func(f *Facts) { w.report(f, "a"); f.Result = chattest.Answer(w.chat, chattest.Says("hi")) })
	if got := w.chat.Status.Internal.PreviousTurn; got != nil {
		t.Errorf("still kept: %+v", got)
	}
}

func TestNothingIsKeptOfATurnWhoseMessageSaysHowItEnded(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"))
	w.pass(func(f *Facts) { w.report(f, "a"); f.Open = messages(false, "b") })
	if got := w.chat.Status.Internal.PreviousTurn; got != nil || len(w.last.Replaced) != 0 {
		t.Errorf("kept %+v, waited for %+v", got, w.last.Replaced)
	}
	// That it once ended otherwise, before the chat took it up again, does not count.
	w = newWorld(t).say("a").answer(chattest.Says("hi"))
	w.pass(func(f *Facts) { f.Reported, f.Open = map[string]int64{"a": 0}, messages(false, "b") })
	w.wantPrevious("a", v1alpha1.TurnAnswered)
}

func TestOneTurnIsKept(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi")).say("b").answer(chattest.Says("hi")).say("c")
	w.wantPrevious("b", v1alpha1.TurnAnswered)
	if got := w.last.Replaced; len(got) != 1 || got[0].Message != "a" || got[0].Result != v1alpha1.TurnAnswered {
		t.Errorf("before the write, %+v is said", got)
	}
}

func TestWhyATurnFailedIsSaidBeforeTheNextOneBegins(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Fails(v1alpha1.ErrorAuthenticationFailed)).say("b")
	if got := w.last.Replaced; len(got) != 1 || got[0].Message != "a" || got[0].Result != v1alpha1.TurnFailed ||
		w.chat.Status.Internal.PreviousTurn != nil {
		t.Errorf("before the write, %+v is said; the status keeps %+v", got, w.chat.Status.Internal.PreviousTurn)
	}
}

func TestACutDropsTheTurnBefore(t *testing.T) {
	for name, c := range map[string]struct {
		cut                func(*Facts)
		kept, dropA, dropB bool
	}{
		"an edit of its message": {cut: func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"}}
		}, dropB: true},
		"an edit before it": {cut: func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "first", ContentHash: "new"}}
		}, dropA: true, dropB: true},
		"an edit behind it": {cut: func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "b", ContentHash: "new"}, Parent: "c-3-1", Index: 4}
		}, kept: true},
		"its message was deleted": {cut: func(f *Facts) {
			f.Truncated = &Truncated{Head: "c-1-1", Length: 2, Turn: TurnRecord{&v1alpha1.TurnStatus{Message: "first",
				HistoryVersion: 1, Result: v1alpha1.TurnAnswered}, v1alpha1.TurnInternalStatus{}}}
		}, dropA: true, dropB: true},
		"the message behind it was deleted": {cut: func(f *Facts) {
			f.Truncated = &Truncated{Head: "c-3-1", Length: 4, Turn: TurnRecord{&v1alpha1.TurnStatus{Message: "a", Index: 2,
				HistoryVersion: 3, Result: v1alpha1.TurnAnswered}, v1alpha1.TurnInternalStatus{}}}
		}, dropB: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("first").answer(chattest.Says("hi")).say("a").answer(chattest.Says("hi"))
			w.pass(func(f *Facts) { w.report(f, "first"); f.Open = messages(false, "b") })
			w.wantPrevious("a", v1alpha1.TurnAnswered)
			edited := &Edited{Message: Message{Name: "a"}, Parent: "c-1-1", Index: 2}
			w.pass(func(f *Facts) {
				if c.cut(f); f.Edited != nil && f.Edited.Name == "a" {
					f.Edited.Parent, f.Edited.Index = edited.Parent, edited.Index
				}
			})
			if kept := w.chat.Status.Internal.PreviousTurn != nil; kept != c.kept {
				t.Errorf("kept %+v", w.chat.Status.Internal.PreviousTurn)
			}
			for message, want := range map[string]bool{"a": c.dropA, "b": c.dropB} {
				if got := slices.Contains(w.last.Superseded, message); got != want {
					t.Errorf("message %s is put aside: %v, want %v", message, got, want)
				}
			}
		})
	}
}

func TestAMessageThatSaysNothingYetIsCutAndEditedByWhatTheChatKeepsOfIt(t *testing.T) {
	w := newWorld(t).say("a").ask(v1alpha1.RequestInterrupt)
	half := chattest.Answer(w.chat, chattest.Says("Half"), chattest.Interrupted())
	w.pass(func(f *Facts) { f.Result = half }).say("b")
	w.wantPrevious("a", v1alpha1.TurnInterrupted)
	a := chattest.User("c", "a", chattest.Content("a"), chattest.Defaulted)
	if editedOf(w.chat, a) == nil { // Its hash is not the one that was committed.
		t.Error("an edit is not seen")
	}
	if IsOpen(w.chat, a) {
		t.Error("it is taken for a new one")
	}
	kept, missing := Whole(w.chat, []v1alpha1.ChatMessage{*a, *half})
	if missing != 2 || len(kept) != 2 {
		t.Fatalf("%d messages are left, want 2", missing)
	}
	left := Rest(kept)
	if left.Turn.Message != "a" || left.Turn.Result != v1alpha1.TurnInterrupted ||
		left.Turn.Internal.ContentHash != "hash of a" || left.Turn.HistoryVersion != 1 {
		t.Errorf("left is %+v, %+v", left.Turn.TurnStatus, left.Turn.Internal)
	}
}
