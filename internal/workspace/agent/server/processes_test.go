// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

func TestAWorkspaceSaysWhatItIs(t *testing.T) {
	a := newAgent(t)
	want := protocol.Info{OS: runtime.GOOS, Arch: runtime.GOARCH, Directory: a.dir, Shell: "/bin/sh", Running: 3}
	check.Equal(t, "info", want, decodeReply[protocol.Info](t, a.get("/v1/info")))
}

func TestCommandsAreStartedListedAndSignalled(t *testing.T) {
	a := newAgent(t)
	request := protocol.StartRequest{Command: "make", Dir: "src", Env: []string{"A=b"}}
	if got := decodeReply[protocol.Process](t, a.put("/v1/processes/chat-1-call", request)); got.Key != "chat-1-call" ||
		got.Command != "make" || !reflect.DeepEqual(a.started, []protocol.StartRequest{request}) {
		t.Errorf("got %+v for %+v", got, a.started)
	}
	if got := decodeReply[protocol.ProcessList](t, a.get("/v1/processes")); !reflect.DeepEqual(got.Processes,
		[]protocol.Process{echo}) {
		t.Errorf("got %+v", got)
	}
	check.Equal(t, "process", echo, decodeReply[protocol.Process](t, a.get("/v1/processes/p1")))
	if got := decodeReply[protocol.Process](t, a.post("/v1/processes/p1/signal",
		protocol.SignalRequest{Signal: protocol.Kill})); got.Note != "kill" {
		t.Errorf("got %+v", got)
	}
	a.output = func(int64) (*Output, error) { return nil, errors.New("there is none") }
	for _, path := range []string{"/v1/processes/p2", "/v1/processes/p2/output", "/v1/processes/p2/output?wait=1"} {
		a.wait = func(context.Context) {}
		a.expect(a.get(path), http.StatusNotFound, protocol.NotFound)
	}
}

func TestRequestedWaitIsCappedAtOneMinute(t *testing.T) {
	a := newAgent(t)
	for query, want := range map[string]time.Duration{"wait=0": 0, "wait=": 0, "wait=7": 7 * time.Second,
		"wait=60": time.Minute, "wait=61": time.Minute, "wait=9223372036854775807": time.Minute} {
		var left time.Duration
		a.wait = func(ctx context.Context) {
			if deadline, ok := ctx.Deadline(); ok {
				left = time.Until(deadline)
			} else {
				t.Errorf("%s: it waits for ever", query)
			}
		}
		a.expect(a.get("/v1/processes/p1?"+query), http.StatusOK, "")
		if left > want || left < want-5*time.Second {
			t.Errorf("%s: it waits for %s", query, left)
		}
	}
	for _, query := range []string{"wait=-1", "wait=x", "wait=1.5", "wait=1e3", "wait=9223372036854775808"} {
		a.expect(a.get("/v1/processes/p1?"+query), http.StatusBadRequest, protocol.BadRequest)
		a.expect(a.get("/v1/processes/p1/output?"+query), http.StatusBadRequest, protocol.BadRequest)
	}
}

func TestClientDisconnectCancelsWait(t *testing.T) {
	a := newAgent(t)
	waits, ended := make(chan struct{}), make(chan struct{})
	a.wait = func(ctx context.Context) { close(waits); <-ctx.Done(); close(ended) }
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-waits
		cancel()
	}()
	if got := a.get("/v1/processes/p1?wait=60", func(r *http.Request) { *r = *r.WithContext(ctx) }); got.err == nil {
		t.Errorf("got %+v", got)
	}
	<-ended
}

// outputOf is an output that begins at an offset, and ends with an error if there is one.
func outputOf(text string, from int64, err error) *Output {
	var content io.Reader = strings.NewReader(text)
	if err != nil {
		content = io.MultiReader(content, broken{err})
	}
	return &Output{From: from, Total: from + int64(len(text)) + 5, ReadCloser: io.NopCloser(content)}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestOutputIsSentAsItIs(t *testing.T) {
	a := newAgent(t)
	raw := "secret content \x00\xff\x1b[31m\r\n"
	for name, tt := range map[string]struct{ query, want, from string }{
		"all":                  {"", raw, "0"},
		"from an offset":       {"?from=7", raw, "7"},
		"a part":               {"?from=7&limit=6", raw[:6], "7"},
		"a part of more":       {"?limit=1000", raw, "0"},
		"as much as there is":  {"?limit=0", raw, "0"},
		"when there is more":   {"?from=9&wait=60", raw, "9"},
		"a later one, as kept": {"?from=100", raw, "150"},
	} {
		t.Run(name, func(t *testing.T) {
			waited := false
			a.wait = func(ctx context.Context) { waited = ctx.Err() == nil }
			a.output = func(from int64) (*Output, error) {
				if from == 100 {
					from = 150
				}
				return outputOf(raw, from, nil), nil
			}
			got := a.get("/v1/processes/p1/output" + tt.query)
			if got.err != nil || got.status != 200 || got.body != tt.want ||
				got.header.Get(protocol.HeaderOutputFrom) != tt.from ||
				got.header.Get(protocol.HeaderOutputTotal) == "" || got.header.Get("Content-Type") != "application/octet-stream" {
				t.Errorf("got %+v", got)
			}
			check.Equal(t, "it waited", strings.Contains(tt.query, "wait"), waited)
		})
	}
	for _, query := range []string{"from=-1", "from=x", "limit=-1", "limit=x", "from=9223372036854775808"} {
		a.expect(a.get("/v1/processes/p1/output?"+query), http.StatusBadRequest, protocol.BadRequest)
	}
}

func TestOutputReadErrorAbortsResponse(t *testing.T) {
	a := newAgent(t)
	a.output = func(from int64) (*Output, error) {
		return outputOf(strings.Repeat("x", 1<<20), from, errors.New("the disk is broken")), nil
	}
	if got := a.get("/v1/processes/p1/output"); got.err == nil {
		t.Errorf("got %d bytes without an error", len(got.body))
	}
}
