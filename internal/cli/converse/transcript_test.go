// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestChangedHistoryIsReported(t *testing.T) {
	for report, again := range map[string][]stream.Event{
		"another chat of this name has begun": {question(0, "of another chat"),
			event(stream.EventStatus, stream.Status{HistoryVersion: 1, Length: 1})},
		"message 2 was deleted": {question(0, "why?"),
			event(stream.EventStatus, stream.Status{HistoryVersion: 3, Length: 1})},
		"the conversation was changed from message 2 on]": {question(0, "why?"),
			event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: 3, Index: 1}),
			event(stream.EventStatus, stream.Status{HistoryVersion: 3, Length: 2})},
	} {
		s := newScreen(t)
		s.takes(question(0, "why?"), reply(1, words("so")),
			event(stream.EventStatus, stream.Status{HistoryVersion: 2, Length: 2}))
		s.takes(append([]stream.Event{event(stream.EventHistoryReset, struct{}{})}, again...)...)
		s.shows("▎[" + report)
	}
}

func TestPendingCallShowsItsDeadlineAndCause(t *testing.T) {
	s := newScreen(t)
	call := v1beta1.PendingToolCall{ID: "c1", Name: "execute", Kind: v1beta1.RequiresApproval,
		ApprovalCause: v1beta1.ApprovalToolChanged}
	s.takes(event(stream.EventRequiresAction, stream.RequiresAction{Deadline: metav1.Now(),
		ToolCalls: []v1beta1.PendingToolCall{call}}))
	s.shows("▎[the chat waits for you until ", "[needs approval (the tool has changed): Tab, then a approves, d denies]")
}

func TestLongCallShowsItsResult(t *testing.T) {
	x := strings.Repeat("x", 100)
	for output, row := range map[string]string{
		`{"output":"","exit_code":1,"wall_duration_ms":5}`: "▎▸ $ " + x[:49] + "… -> exit code 1 after 5ms\n",
		x: "▎▸ $ " + x[:34] + "… -> " + x[:35] + "…\n",
	} {
		s := newScreen(t)
		s.takes(question(0, "go"), reply(1,
			v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: &v1beta1.ToolCall{ID: "c1", Name: "execute",
				Input: `{"command":"` + x + `"}`}},
			v1beta1.MessagePart{Type: v1beta1.PartToolResult, ToolResult: &v1beta1.ToolResult{ID: "c1", Name: "execute",
				Output: output}}))
		s.shows(row)
	}
}

func noteAt(index int64, text string) stream.Event {
	return event(stream.EventNote, stream.Note{Index: index, Generation: 1, Message: stream.Message{Name: text,
		UID: "u-" + text, Role: v1beta1.RoleUser, Content: text, Visibility: v1beta1.VisibleToUsers}})
}

func TestNotesStandBeforeTheirMessages(t *testing.T) {
	s := newScreen(t)
	s.takes(noteAt(0, "note 0"), question(0, "question"), reply(1, words("answer")))
	kept := s.items[1]
	s.takes(noteAt(1, "note 1"), noteAt(2, "note 2"))
	var order []string
	for line := range strings.Lines(s.shown()) {
		for _, w := range []string{"note 0", "question", "note 1", "answer", "note 2"} {
			if strings.Contains(line, w) {
				order = append(order, w)
			}
		}
	}
	check.Equal(t, "order", "[note 0 question note 1 answer note 2]", fmt.Sprint(order))
	check.Equal(t, "the item of the question is kept", true, kept == s.items[1])
	s.takes(event(stream.EventNoteDeleted, stream.NoteDeleted{UID: "u-note 1"}))
	check.Equal(t, "items after a deletion", 4, len(s.items))
}
