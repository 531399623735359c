// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/text/content"
)

// says is what the message says once it was looked at: state, Ready, reason, and whether that is of its newest content.
func says(m *v1beta1.ChatMessage, chat *v1beta1.Chat) string {
	s := &scope{message: m, chat: chat}
	if s.noteChat(); !settled(s) {
		next := m.DeepCopy()
		if summary, ok := describe(&next.Status, s); ok {
			conditions.Message(&next.Status, summary, next.Generation, time.Time{})
			m.Status = next.Status
		}
	}
	ready := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady)
	words := []string{string(m.Status.State), string(ready.Status), ready.Reason}
	if m.Status.ObservedGeneration != m.Generation {
		words = append(words, "before")
	}
	return strings.Join(words, " ")
}

func edit(m *v1beta1.ChatMessage, content string) *v1beta1.ChatMessage {
	m.Generation++
	m.Spec.Content = content
	return m
}

func TestEditInArchivedChatIsReportedAsWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		turn   v1beta1.TurnResult
		newest string // The message of the chat's newest turn.
		before string
	}{
		"of the newest turn":               {v1beta1.TurnAnswered, "q", "Committed True Answered"},
		"of an earlier turn":               {v1beta1.TurnInterrupted, "later", "Committed False Interrupted"},
		"of one that failed, long cleared": {v1beta1.TurnFailed, "q", "Committed False TurnFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			st := v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting, Turn: &v1beta1.TurnStatus{Message: "q", HistoryVersion: 3}}
			m := told(st, c.turn)
			st.Internal.Turn.ContentHash = m.Status.ContentHash
			if st.Turn.Result, st.Turn.Message = c.turn, c.newest; c.newest != "q" {
				st.Turn.HistoryVersion, st.Internal.Turn.ContentHash = 5, "another"
				st.Internal.Tail = []v1beta1.CommittedMessage{
					{Message: "q", HistoryVersion: 3, ContentHash: m.Status.ContentHash},
					{Message: c.newest, HistoryVersion: 5, PreviousTurn: &v1beta1.TurnOutcome{Message: "q", Result: c.turn}}}
			}
			chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}, Status: st}
			if got := says(m, chat); got != c.before {
				t.Fatalf("it says %q", got)
			}
			if got := says(edit(m, "something else"), chat); got != c.before+" before" {
				t.Errorf("while the chat takes the edit up it says %q", got)
			}
			chat.Status.Archived = true
			const held = "Committed Unknown ChatArchived"
			for _, content := range []string{"something else", "and again"} {
				if got := says(edit(m, content), chat); got != held {
					t.Errorf("edited to %q it says %q", content, got)
				}
			}
			if ready := m.Status.Conditions[0].Message; !strings.Contains(ready, "spec.archived") {
				t.Errorf("it does not say what to do: %s", ready)
			}
			if got := says(edit(m, "q"), chat); got != c.before {
				t.Errorf("undone it says %q", got)
			}
		})
	}
}

func TestAnEditThatCountsIsForgotten(t *testing.T) {
	st := v1beta1.ChatStatus{Turn: &v1beta1.TurnStatus{Message: "q", HistoryVersion: 3}, Archived: true}
	m := told(st, v1beta1.TurnAnswered)
	st.Turn.Result, st.Internal.Turn.ContentHash = v1beta1.TurnAnswered, m.Status.ContentHash
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}, Status: st}
	says(edit(m, "something else"), chat)
	anew := chat.DeepCopy()
	anew.Status.Archived = false
	anew.Status.Turn.HistoryVersion, anew.Status.Turn.Result = 5, ""
	anew.Status.Internal.Turn.ContentHash = content.Of(m)
	if got := says(m, anew); got != "Committed Unknown Answering" {
		t.Errorf("it says %q", got)
	}
	if got := says(m, chat); got != "Committed Unknown Answering" {
		t.Errorf("an old view of the chat takes it back: %q", got)
	}
}

// A turn can fail, and its error be cleared away, before its message has said anything.
func TestTurnFailureIsReportedAfterErrorIsCleared(t *testing.T) {
	m := asked()
	st := v1beta1.ChatStatus{Turn: &v1beta1.TurnStatus{Message: "a", HistoryVersion: 1, Result: v1beta1.TurnFailed}}
	st.Internal.Turn.ContentHash = content.Of(m)
	if got := says(m, &v1beta1.Chat{Status: st}); got != "Committed False TurnFailed" {
		t.Errorf("it says %q", got)
	}
}
