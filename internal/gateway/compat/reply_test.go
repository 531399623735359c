// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/conduct"
)

// says is a chat that says so many bytes to message m.
func says(bytes int) func(context.Context, conduct.Follow) error {
	return func(_ context.Context, f conduct.Follow) error {
		for _, event := range []struct {
			name string
			data any
		}{
			{stream.EventMessage, stream.MessageCommitted{Message: stream.Message{Name: "m", Role: v1alpha1.RoleUser}}},
			{stream.EventMessagePart, stream.MessagePart{HistoryVersion: 1, Attempt: 1, Seq: 1,
				Role: string(v1alpha1.RoleAssistant), Part: parts.Part{Type: parts.Text, Text: strings.Repeat("a", bytes)}}},
			{stream.EventStatus, stream.Status{Result: v1alpha1.TurnInterrupted}},
		} {
			e, err := stream.New(event.name, "", event.data)
			if err == nil {
				err = f.Send(e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func TestAnswersTakeNoMoreRoomThanTheyMay(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int
		taken int64 // by others, or by the caller itself
		by    string
		want  string
	}{
		"there is room":            {100, 100, "ben", "[DONE]"},
		"the caller has it all":    {100, 150, "anna", "too_many_requests"},
		"others have it all":       {100, 350, "ben", "gateway_full"},
		"it is more than they may": {201, 0, "ben", "too_many_requests"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answers: newRoom(400, 200),
				options: Options{Conductor: conduct.New(conduct.Options{Follow: says(c.bytes)})}}
			before := &share{room: s.answers, caller: c.by}
			s.answers.perCaller = 400
			if refused := before.grow(c.taken); refused != nil {
				t.Fatal(refused)
			}
			s.answers.perCaller = 200
			w := httptest.NewRecorder()
			call := &call{w: w, r: httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil),
				control: http.NewResponseController(w), by: conduct.Caller{Name: "anna"}}
			begun := conduct.Begun{Chat: &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
				Message: &v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "m"},
					Status: v1alpha1.ChatMessageStatus{State: v1alpha1.MessageCommitted}}}
			_ = s.tell(call, begun, completions.NewStream(call.answer(begun), false, call.send)) // The client is told.
			if !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("told was %.300s", w.Body)
			}
			if before.leave(); s.answers.taken != 0 {
				t.Errorf("%d bytes are left", s.answers.taken)
			}
		})
	}
}
