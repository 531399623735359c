// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"

func TestASessionIsReadAsItIs(t *testing.T) {
	c := raw(t, switching+"Upgrade: parley-session\r\nParley-Process: p3\r\n\r\nhello\n", false)
	s, err := c.Speak(t.Context(), protocol.StartRequest{Argv: []string{"cat"}})
	if err != nil || s.ID != "p3" {
		t.Fatalf("it is %+v, %v", s, err)
	}
	defer s.Close()
	if said, err := io.ReadAll(s); err != nil || string(said) != "hello\n" {
		t.Errorf("it says %q, %v", said, err)
	}
}

func TestWhatIsNoSessionIsToldAsSuch(t *testing.T) {
	for name, c := range map[string]struct{ answer, says string }{
		"another protocol": {switching + "Upgrade: websocket\r\nParley-Process: p3\r\n\r\n", "not that of a session"},
		"no process":       {switching + "Upgrade: parley-session\r\n\r\n", "not that of a session"},
		"a process that is a path": {switching + "Upgrade: parley-session\r\nParley-Process: ../p3\r\n\r\n",
			"not that of a session"},
		"no upgrade": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "not one of an agent"},
		"a redirect": {"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://evil.example.com/\r\nContent-Length: 0\r\n\r\n",
			"a redirect, which is not followed"},
		"a refusal": {"HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\n\r\n" +
			`{"code":"TooMany","message":"32 programs run` + "\\u001b[31m" + `"}`, "32 programs run"},
		"a refusal without an end": {"HTTP/1.1 500 Oh\r\n\r\n" + strings.Repeat("x", 1<<20), "not one of an agent"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := raw(t, c.answer, false).Speak(t.Context(), protocol.StartRequest{Argv: []string{"cat"}})
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("it is %+v, %v", s, err)
			}
		})
	}
}

func TestNobodyWhoAnswersIsToldAsSuch(t *testing.T) {
	for name, c := range map[string]*client.Client{
		"it hangs up": raw(t, "", false), "it hangs": raw(t, "", true), "it breaks off": raw(t, switching, false),
	} {
		_, err := c.Speak(t.Context(), protocol.StartRequest{Argv: []string{"cat"}})
		if !errors.Is(err, client.ErrUnreachable) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSessionRetryOnBusyAgentUsesNewKey(t *testing.T) {
	var keys []string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, strings.TrimPrefix(r.URL.Path, "/v1/sessions/"))
		if len(keys) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"code":"Unavailable","message":"busy"}`)
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"code":"CannotStart","message":"no such program"}`)
	})
	_, err := c.Speak(t.Context(), protocol.StartRequest{Argv: []string{"cat"}})
	if !isCode(err, protocol.CannotStart) || len(keys) != 2 || keys[0] == keys[1] || !protocol.ValidKey(keys[1]) {
		t.Errorf("asked for were %q: %v", keys, err)
	}
}
