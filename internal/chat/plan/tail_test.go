// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/test/kit/chattest"
)

// wantTail compares what the chat records of the messages that no generated message follows yet.
func (w *world) wantTail(want ...v1beta1.CommittedMessage) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.chat.Status.Internal.Tail); diff != "" {
		w.t.Errorf("the tail is another one (-want +got):\n%s", diff)
	}
}

// wantPrevious wants the newest commit to record how the turn of the message ended.
func (w *world) wantPrevious(message string, result v1beta1.TurnResult) {
	w.t.Helper()
	tail := w.chat.Status.Internal.Tail
	if len(tail) == 0 || tail[len(tail)-1].PreviousTurn == nil {
		w.t.Fatalf("no end of a turn is recorded: %+v", tail)
	}
	if got := tail[len(tail)-1].PreviousTurn; got.Message != message || got.Result != result {
		w.t.Errorf("recorded is %+v, want that %s ended as %s", got, message, result)
	}
}

// commit of a message of a person, as the first of a history.
func commit(name string) v1beta1.CommittedMessage {
	return v1beta1.CommittedMessage{Message: name, HistoryVersion: 1, ContentHash: "hash of " + name}
}

// behind is the commit of a message behind another one, whose turn ended so.
func behind(name, parent string, position, version int64, before *v1beta1.TurnOutcome) v1beta1.CommittedMessage {
	c := commit(name)
	c.Parent, c.Position, c.HistoryVersion, c.PreviousTurn = parent, position, version, before
	return c
}

func TestReplyTakesTheTailAlong(t *testing.T) {
	w := newWorld(t).say("a")
	w.wantTail(commit("a"))
	w.answer(chattest.Says("hi"))
	w.wantTail()
	w.say("b")
	w.wantTail(behind("b", "c-1-1", 2, 3, &v1beta1.TurnOutcome{Message: "a", Result: v1beta1.TurnAnswered}))
}

func TestReplyThatFollowsSomethingElseIsNone(t *testing.T) {
	w := newWorld(t).say("a")
	w.answer(chattest.Says("hi"), func(m *v1beta1.ChatMessage) { m.Spec.Follows[0].ContentHash = "another" })
	w.want("Running v1 a/1 2:GenerateAssistant []")
}

func TestFailureIsRecordedWithTheNextMessage(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	why := w.chat.Status.LastError.Text()
	w.say("b")
	w.wantTail(commit("a"), behind("b", "a", 1, 2, &v1beta1.TurnOutcome{Message: "a", Result: v1beta1.TurnFailed,
		Reason: v1beta1.ErrorAuthenticationFailed, Error: why}))
}

func TestEditKeepsTheTailBeforeIt(t *testing.T) {
	w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt).pass(func(f *Facts) {
		f.Result = chattest.Answer(f.Chat, chattest.Interrupted())
	}).say("b")
	ended := &v1beta1.TurnOutcome{Message: "a", Result: v1beta1.TurnInterrupted}
	w.wantTail(commit("a"), behind("b", "a", 1, 3, ended))
	chain, missing := history.Whole(history.RefOf(w.chat), []history.Node{{Name: "a"}, {Name: "b"}})
	if missing != 2 {
		t.Fatalf("message %d is missing", missing)
	}
	w.pass(func(f *Facts) {
		f.Edited = &Edited{Message: Message{Name: "b", ContentHash: "new"}, Commit: *chain[1].Commit,
			Tail: history.Tail(chain[:1])}
	})
	again := behind("b", "a", 1, 4, ended)
	again.ContentHash = "new"
	w.wantTail(commit("a"), again)
}

func TestCutSupersedesTheTail(t *testing.T) {
	deleted := func(head string, length int64) func(*Facts) {
		return func(f *Facts) {
			f.Truncated = &Truncated{Head: head, Length: length, Turn: TurnRecord{&v1beta1.TurnStatus{Message: "first",
				HistoryVersion: 1, Result: v1beta1.TurnAnswered}, v1beta1.TurnInternalStatus{}}}
		}
	}
	for name, c := range map[string]struct {
		cut  func(*Facts)
		want []string
	}{
		"an edit before it": {func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "first", ContentHash: "new"}}
		}, []string{"a", "b"}},
		"an edit in it": {func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: "a", ContentHash: "new"},
				Commit: v1beta1.CommittedMessage{Parent: "c-1-1", Position: 2}}
		}, []string{"b"}},
		"a deletion before it": {deleted("first", 1), []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("first").answer(chattest.Says("hi")).say("a").
				answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed)).say("b")
			w.pass(c.cut)
			if !slices.Equal(w.last.Superseded, c.want) {
				t.Errorf("superseded are %v, want %v", w.last.Superseded, c.want)
			}
		})
	}
}

func TestEditedTailMessageIsDetectedAndNotOpen(t *testing.T) {
	w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt)
	half := chattest.Answer(w.chat, chattest.Says("Half"), chattest.Interrupted())
	w.pass(func(f *Facts) { f.Result = half }).say("b")
	b := chattest.User("c", "b", chattest.Content("other"), chattest.Defaulted)
	var f Facts
	if f.NoteEdit(b, CommitOf(w.chat, b)); f.Edited == nil || IsOpen(w.chat, b) {
		t.Error("the edit is not seen, or the message is taken for a new one")
	}
	another := b.DeepCopy()
	another.UID = "another"
	w.chat.Status.Internal.Tail[0].UID, w.chat.Status.Internal.Turn.MessageUID = "first", "first"
	if !IsOpen(w.chat, another) {
		t.Error("a message that has only the name is taken for the committed one")
	}
}

func TestChainTellsHowEachTurnEnded(t *testing.T) {
	w := newWorld(t).say("a").ask(v1beta1.RequestInterrupt)
	half := chattest.Answer(w.chat, chattest.Says("Half"), chattest.Interrupted())
	w.pass(func(f *Facts) { f.Result = half }).say("b")
	reply := chattest.Answer(w.chat, chattest.Says("hi"))
	w.pass(func(f *Facts) { f.Result = reply })
	a := chattest.User("c", "a", chattest.Content("a"), chattest.Defaulted)
	whole := WholeOf(w.chat, []v1beta1.ChatMessage{*a, *half, *reply}) // Message b was deleted.
	if whole.Missing != 2 {
		t.Fatalf("the first one missing is %d", whole.Missing)
	}
	left := whole.Rest()
	if left.Turn.Message != "a" || left.Turn.Result != v1beta1.TurnInterrupted ||
		left.Turn.Internal.ContentHash != "hash of a" || left.Turn.HistoryVersion != 1 {
		t.Errorf("left is %+v, %+v", left.Turn.TurnStatus, left.Turn.Internal)
	}
}

func TestTailIsBounded(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	w.chat.Status.Internal.Tail = make([]v1beta1.CommittedMessage, v1beta1.MaxTail)
	w.say("b")
	if got := w.last.Rejected; len(got) != 1 || got[0].Message != "b" || got[0].Reason != v1beta1.ReasonQueueFull {
		t.Errorf("rejected are %+v", got)
	}
}
