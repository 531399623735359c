// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

func failing(f modelserver.Fault) modelserver.Script {
	return modelserver.Always(modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("a", "b", "c")}, Fault: &f})
}

func TestRetryAfterIsSentInEveryFormat(t *testing.T) {
	ahead := modelserver.Duration(time.Hour)
	for name, c := range map[string]struct {
		retry  modelserver.RetryAfter
		header string
		holds  func(string) bool
	}{
		"seconds": {modelserver.RetryAfter{Seconds: new(7)}, "Retry-After", func(v string) bool { return v == "7" }},
		"milliseconds": {modelserver.RetryAfter{Milliseconds: new(250)}, "Retry-After-Ms",
			func(v string) bool { return v == "250" }},
		"date": {modelserver.RetryAfter{Date: &ahead}, "Retry-After", func(v string) bool {
			at, err := http.ParseTime(v)
			left := time.Until(at)
			return err == nil && left > 59*time.Minute && left <= time.Hour
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, failing(modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429, RetryAfter: &c.retry}))
			response, _ := send(t, http.MethodPost, url+chatPath, chat(user))
			if v := response.Header.Get(c.header); response.StatusCode != 429 || !c.holds(v) {
				t.Errorf("%d, %s: %q", response.StatusCode, c.header, v)
			}
		})
	}
}

func TestScriptOverridesHTTPErrorBody(t *testing.T) {
	for name, c := range map[string]struct {
		fault modelserver.Fault
		path  string
		want  string
	}{
		"quota": {modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429, Type: "insufficient_quota",
			Code: "insufficient_quota", Message: "You exceeded your current quota."}, chatPath,
			`{"error":{"code":"insufficient_quota","message":"You exceeded your current quota.","param":null,"type":"insufficient_quota"}}`},
		"message only": {modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429, Message: "Slow down."}, chatPath,
			`{"error":{"code":"rate_limit_exceeded","message":"Slow down.","param":null,"type":"requests"}}`},
		"page of a proxy": {modelserver.Fault{Kind: modelserver.FaultStatus, Status: 502, Body: "<html>Bad Gateway</html>"},
			chatPath, "<html>Bad Gateway</html>"},
		"overloaded": {modelserver.Fault{Kind: modelserver.FaultStatus, Status: 529}, messagesPath,
			`"error":{"message":"Overloaded","type":"overloaded_error"}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, failing(c.fault))
			body := chat(user)
			if c.path == messagesPath {
				body = anthropicChat(user)
			}
			if response, answer := send(t, http.MethodPost, url+c.path, body); response.StatusCode < 400 ||
				!strings.Contains(answer, c.want) {
				t.Errorf("%d: %s", response.StatusCode, answer)
			}
		})
	}
}

func TestErrorEventTypeMatchesStatus(t *testing.T) {
	forEach(t, failing(modelserver.Fault{Kind: modelserver.FaultError, Status: 529, Type: "overloaded_error",
		Message: "Too many.", After: new(1)}),
		func(t *testing.T, c client, _ *modelserver.Server) {
			got := ask(t.Context(), c, "hi")
			if got.err == nil || got.text != "a" || !strings.Contains(got.err.Error(), "Too many.") {
				t.Fatalf("got %+v", got)
			}
		})
	_, url := serve(t, failing(modelserver.Fault{Kind: modelserver.FaultError, Status: 529}))
	if _, body := send(t, http.MethodPost, url+messagesPath, anthropicChat(user)); !strings.HasSuffix(body,
		"event: error\ndata: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"},\"type\":\"error\"}\n\n") {
		t.Error(body)
	}
}

func TestHangAfterPartialReplyEndsWithClient(t *testing.T) {
	forEach(t, failing(modelserver.Fault{Kind: modelserver.FaultHang, After: new(2)}),
		func(t *testing.T, c client, server *modelserver.Server) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			text := ""
			c.stream(ctx, question{text: "hi"}, func(piece string) {
				if text += piece; text == "ab" {
					cancel()
				}
			})
			check.OK(t, server.WaitUntil(t.Context(), func([]modelserver.Record) bool { return server.InFlight() == 0 }))
			if r := server.Requests()[0]; text != "ab" || !r.Aborted || r.Parts != 2 || r.Status != http.StatusOK {
				t.Errorf("got %q, record %+v", text, r)
			}
		})
}
