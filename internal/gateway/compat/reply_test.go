// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/compat/messages"
	"parley.dev/parley/internal/gateway/compat/responses"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/test/kit/check"
)

// event is one of a chat.
type event struct {
	name string
	data any
}

// says is a chat that says so many bytes to message m.
func says(bytes int) func(context.Context, Follow) error {
	return follows(
		event{stream.EventMessage, stream.MessageCommitted{Message: stream.Message{Name: "m", Role: v1beta1.RoleUser}}},
		event{stream.EventMessagePart, stream.MessagePart{HistoryVersion: 1, Attempt: 1, Seq: 1,
			Role: string(v1beta1.RoleAssistant), Part: parts.Part{Type: parts.Text, Text: strings.Repeat("a", bytes)}}},
		event{stream.EventStatus, stream.Status{Turn: "m", Result: v1beta1.TurnInterrupted}})
}

// follows is a chat with these events.
func follows(events ...event) func(context.Context, Follow) error {
	return func(_ context.Context, f Follow) error {
		for _, event := range events {
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
		taken map[string]int64 // by others, or by the caller itself
		want  string
	}{
		"there is room":            {100, map[string]int64{"ben": 100}, "[DONE]"},
		"the caller has it all":    {100, map[string]int64{"anna": 150}, "too_many_requests"},
		"others have it all":       {100, map[string]int64{"ben": 200, "carl": 150}, "gateway_full"},
		"it is more than they may": {201, nil, "too_many_requests"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{answers: limit.NewPerCaller(400, 200),
				backend: &backend{Options{Follow: says(c.bytes)}}}
			var before []*limit.Lease
			for by, bytes := range c.taken {
				before = append(before, s.answers.Lease(by))
				check.OK(t, before[len(before)-1].Grow(bytes))
			}
			w := httptest.NewRecorder()
			call := &call{w: w, r: httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil),
				control: http.NewResponseController(w), out: slowclient.New(w, writeTimeout), by: caller{name: "anna"}}
			begun := exchange{chat: &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
				message: &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "m"},
					Status: v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted}}}
			_ = s.stream(call, begun, completions.NewStream(call.answer(begun), call.send)) // The client is told.
			check.Contains(t, w.Body.String(), c.want)
			for _, lease := range before {
				lease.Release()
			}
			if err := errors.Join(s.answers.Lease("anna").Grow(200), s.answers.Lease("ben").Grow(200)); err != nil {
				t.Errorf("bytes are left: %v", err)
			}
		})
	}
}

func TestStreamsSayWhatTheyWaitFor(t *testing.T) {
	asked := event{stream.EventMessage,
		stream.MessageCommitted{Message: stream.Message{Name: "m", Role: v1beta1.RoleUser}}}
	waits := func(on v1beta1.WaitFor) event {
		return event{stream.EventStatus, stream.Status{Wait: &v1beta1.ChatWait{For: on, Reason: "R", Message: "why"}}}
	}
	goesOn, ended := event{stream.EventStatus, stream.Status{}}, event{stream.EventStatus,
		stream.Status{Turn: "m", Result: v1beta1.TurnInterrupted}}
	begun := exchange{chat: &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		message: &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: "m"},
			Status: v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted}}}
	for protocol, c := range map[string]struct {
		stream func(*call) audience
		event  string
	}{
		"completions": {func(c *call) audience { return completions.NewStream(c.answer(begun), c.send) },
			`"choices":[{"index":0,"delta":{},"finish_reason":null}],"parley":{"wait":`},
		"messages": {func(c *call) audience { return messages.NewStream(c.answer(begun), c.send) },
			"event: ping\ndata: {\"parley\":{\"wait\":"},
		"responses": {func(c *call) audience {
			return responses.NewStream(c.answer(begun), responses.FromStart, c.send)
		}, ""},
	} {
		t.Run(protocol, func(t *testing.T) {
			s := &server{answers: limit.NewPerCaller(400, 200), backend: &backend{Options{
				Follow: follows(asked, waits(v1beta1.WaitForPod), goesOn, waits(v1beta1.WaitForApproval), goesOn, ended)}}}
			w := httptest.NewRecorder()
			answer := &call{w: w, out: slowclient.New(w, writeTimeout), control: http.NewResponseController(w),
				r: httptest.NewRequest(http.MethodPost, "/v1", nil)}
			check.OK(t, s.stream(answer, begun, c.stream(answer)))
			body := w.Body.String()
			if n := strings.Count(body, ": parley.wait "); n != 4 {
				t.Errorf("%d comments say what it waits for: %s", n, body)
			}
			if n := strings.Count(body, c.event); c.event != "" && (n != 2 || !strings.Contains(body, c.event+`{"for":"Approval"`) ||
				!strings.Contains(body, c.event+"null}")) {
				t.Errorf("%d events say what it waits for: %s", n, body)
			}
		})
	}
}
