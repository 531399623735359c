// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/internal/workspace/protocol"
)

// try makes a request without expecting anything of the answer.
func (w *workspace) try(method, path, body string) (*http.Response, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set(protocol.HeaderChat, w.chat)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response, string(answer)
}

func TestCommandOutputIsReadableByOffset(t *testing.T) {
	w := newWorkspace(t)
	w.bind("chat")
	var p protocol.Process
	command := protocol.StartRequest{Command: `printf '0123456789\000\377'; exec sleep 60`}
	w.ask("PUT", "/v1/processes/chat-1-1", command, &p)
	for _, c := range []struct{ query, body, from string }{
		{"?wait=30", "0123456789\x00\xff", "0"}, // The others need not wait any more.
		{"?from=3&limit=4&wait=30", "3456", "3"},
		{"?from=10", "\x00\xff", "10"},
		{"?from=12", "", "12"},
	} {
		response, body := w.try("GET", "/v1/processes/"+p.ID+"/output"+c.query, "")
		if response.StatusCode != 200 || body != c.body || response.Header.Get(protocol.HeaderOutputFrom) != c.from ||
			response.Header.Get(protocol.HeaderOutputTotal) != "12" {
			t.Errorf("%s: got %q, %v", c.query, body, response.Header)
		}
	}
	w.ask("POST", "/v1/processes/"+p.ID+"/signal", protocol.SignalRequest{Signal: protocol.Terminate}, nil)
	w.ask("GET", "/v1/processes/"+p.ID+"?wait=30", nil, &p)
	if p.State != protocol.Exited || p.Signal != "SIGTERM" {
		t.Errorf("got %+v", p)
	}
}

func TestRefusalsOfTheManagerKeepTheirCodes(t *testing.T) {
	w := newWorkspace(t)
	w.bind("chat")
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               protocol.ErrorCode
	}{
		{"GET", "/v1/processes/p99", "", 404, protocol.NotFound},
		{"GET", "/v1/processes/p99/output", "", 404, protocol.NotFound},
		{"POST", "/v1/processes/p99/signal", `{"signal":"kill"}`, 404, protocol.NotFound},
		{"PUT", "/v1/processes/key", `{}`, 400, protocol.BadRequest},
		{"PUT", "/v1/processes/key2", `{"argv":["/no/such/program"]}`, 422, protocol.CannotStart},
	} {
		response, body := w.try(tt.method, tt.path, tt.body)
		var refused protocol.Error
		if err := json.Unmarshal([]byte(body), &refused); err != nil || refused.Code != tt.code ||
			response.StatusCode != tt.status {
			t.Errorf("%s %s: got %s: %s", tt.method, tt.path, response.Status, body)
		}
	}
}
