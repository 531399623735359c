// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
)

// isCode reports whether an error is a refusal of that kind.
func isCode(err error, code protocol.ErrorCode) bool {
	refused, ok := errors.AsType[*protocol.Error](err)
	return ok && refused.Code == code
}

func TestACommandIsStartedOnceUnderItsKey(t *testing.T) {
	agent := fakeworkspace.Start(t)
	c := agent.Client()
	first, err := c.Start(t.Context(), "k.1.call", protocol.StartRequest{Command: "make", Dir: "src"})
	if err != nil || first.ID != "p1" || first.Command != "make" || first.Dir != "src" {
		t.Fatalf("got %+v, %v", first, err)
	}
	if second, err := c.Start(t.Context(), "k.1.call", protocol.StartRequest{Command: "make"}); err != nil ||
		second.ID != "p1" || len(agent.Processes()) != 1 {
		t.Errorf("the second time: %+v, %v", second, err)
	}
	for _, key := range []string{"", "a/b", "../x", ".x", "a b", strings.Repeat("k", protocol.MaxKeyLength+1)} {
		if _, err := c.Start(t.Context(), key, protocol.StartRequest{Command: "true"}); err == nil {
			t.Errorf("the key %q was taken", key)
		}
	}
}

func TestWaitEndsWithCommandOrCallerContext(t *testing.T) {
	agent := fakeworkspace.Start(t)
	agent.Run = func(*fakeworkspace.Process) {}
	c := agent.Client()
	p := agent.Begin("k", "sleep")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Wait(ctx, "p1", func() {}); !errors.Is(err, context.Canceled) || errors.Is(err, client.ErrUnreachable) {
		t.Errorf("a wait that its caller ended: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		got, err := c.Wait(t.Context(), "p1", func() {})
		if err == nil && (got.State != protocol.Exited || *got.ExitCode != 3) {
			err = errors.New("it has not exited with 3")
		}
		ended <- err
	}()
	p.Exit(3)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !slices.Contains(agent.Requests(), "GET /v1/processes/p1?wait=15") {
		t.Errorf("asked were %q", agent.Requests())
	}
}

func TestWaitRepeatsRequestUntilCommandExits(t *testing.T) {
	agent := fakeworkspace.Start(t)
	agent.Run = func(*fakeworkspace.Process) {}
	p := agent.Begin("k", "sleep")
	asked := 0
	agent.Before = func(w http.ResponseWriter, _ *http.Request) bool {
		if asked++; asked > 2 {
			p.Exit(0)
			return false
		}
		_, _ = w.Write([]byte(`{"id":"p1","state":"Running"}`))
		return true
	}
	began := time.Now()
	if got, err := agent.Client().Wait(t.Context(), "p1", func() {}); err != nil || got.State != protocol.Exited {
		t.Errorf("got %+v, %v", got, err)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("three questions were asked within %s", took)
	}
}

func TestOutputIsReadByOffset(t *testing.T) {
	agent := fakeworkspace.Start(t)
	agent.Run = func(*fakeworkspace.Process) {}
	p := agent.Begin("k", "seq")
	p.Say("0123456789")
	c := agent.Client()
	for name, c1 := range map[string]struct {
		from, limit int64
		want        client.Output
	}{
		"all":                {0, 100, client.Output{From: 0, Total: 10, Data: []byte("0123456789")}},
		"a piece":            {2, 3, client.Output{From: 2, Total: 10, Data: []byte("234")}},
		"nothing at the end": {10, 100, client.Output{From: 10, Total: 10, Data: []byte{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.Output(t.Context(), "p1", c1.from, c1.limit, 0)
			check.OK(t, err)
			check.Equal(t, "result", &c1.want, got)
		})
	}
	p.Forget(4, 8)
	if got, err := c.Output(t.Context(), "p1", 5, 100, 0); err != nil || got.From != 8 || string(got.Data) != "89" {
		t.Errorf("from within what is not kept: %+v, %v", got, err)
	}
	waited := make(chan error, 1)
	go func() {
		got, err := c.Output(t.Context(), "p1", 10, 100, time.Minute)
		if err == nil && string(got.Data) != "more" {
			err = errors.New("it did not wait for more")
		}
		waited <- err
	}()
	p.Say("more")
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

func TestSignalsAndRefusalsOfThemComeThrough(t *testing.T) {
	agent := fakeworkspace.Start(t)
	agent.Run = func(*fakeworkspace.Process) {}
	p := agent.Begin("k", "sleep")
	c := agent.Client()
	if got, err := c.Signal(t.Context(), "p1", protocol.Terminate); err != nil || got.State != protocol.Running {
		t.Errorf("got %+v, %v", got, err)
	}
	check.Equal(t, "the process", protocol.Terminate, <-p.Signals)
	p.Exit(0)
	if _, err := c.Signal(t.Context(), "p1", protocol.Kill); !isCode(err, protocol.NotRunning) {
		t.Errorf("a process that has ended: %v", err)
	}
	if _, err := c.Signal(t.Context(), "p9", protocol.Kill); !isCode(err, protocol.NotFound) {
		t.Errorf("an unknown process: %v", err)
	}
	before := len(agent.Requests())
	for _, id := range []string{"", "..", "p1/output", "p1?x", "%2e%2e"} {
		if _, err := c.Process(t.Context(), id); !isCode(err, protocol.NotFound) {
			t.Errorf("the id %q: %v", id, err)
		}
	}
	if after := agent.Requests()[before:]; len(after) != 0 {
		t.Errorf("ids that cannot be were asked for: %q", after)
	}
}

func TestFileContentUsesExactPath(t *testing.T) {
	for _, path := range []string{"a/b.txt", "/workspace/a/b.txt", "./a//../b.txt", "a b/%2F?#é.txt"} {
		agent := fakeworkspace.Start(t)
		_, err := agent.Client().Write(t.Context(), "key", path, []byte("content"))
		check.OK(t, err)
		content, _ := agent.File(path)
		check.Equal(t, path, "content", content)
		got, err := agent.Client().Content(t.Context(), path, 100)
		check.OK(t, err)
		check.Equal(t, path, "content", string(got))
	}
}

func TestFileChangesSendTheirCallKey(t *testing.T) {
	agent := fakeworkspace.Start(t)
	keys := map[string]bool{}
	agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		keys[r.Method+" "+r.Header.Get(protocol.HeaderCall)] = true
		return false
	}
	agent.Edit = func(string, protocol.EditRequest) (*protocol.EditResponse, *protocol.Error) {
		return &protocol.EditResponse{}, nil
	}
	c := agent.Client()
	if _, err := c.Write(t.Context(), "k.1.w", "f", nil); err != nil {
		t.Error(err)
	}
	if _, err := c.Edit(t.Context(), "k.1.e", protocol.EditRequest{}); err != nil {
		t.Error(err)
	}
	if !keys["PUT k.1.w"] || !keys["POST k.1.e"] {
		t.Errorf("got %v", keys)
	}
}

func TestFileLargerThanRequestedLimitIsRejected(t *testing.T) {
	agent := fakeworkspace.Start(t)
	c := agent.Client()
	if _, err := c.Write(t.Context(), "k", "f", []byte("content")); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Content(t.Context(), "f", 7); err != nil || string(got) != "content" {
		t.Errorf("as large as it may be: %q, %v", got, err)
	}
	if got, err := c.Content(t.Context(), "f", 6); !isCode(err, protocol.TooLarge) {
		t.Errorf("one byte more: %q, %v", got, err)
	}
}

func TestWhatIsTooLargeIsNotSent(t *testing.T) {
	agent := fakeworkspace.Start(t)
	c := agent.Client()
	if _, err := c.Write(t.Context(), "k", "f", make([]byte, protocol.MaxFileBytes+1)); !isCode(err, protocol.TooLarge) {
		t.Errorf("a file: %v", err)
	}
	long := strings.Repeat("x", protocol.MaxRequestBytes)
	edits := protocol.EditRequest{Edits: []protocol.Edit{{Path: "f", NewText: long}}}
	if _, err := c.Edit(t.Context(), "k", edits); !isCode(err, protocol.TooLarge) {
		t.Errorf("edits: %v", err)
	}
	if got := agent.Requests(); len(got) != 0 {
		t.Errorf("asked were %q", got)
	}
}

func TestAWorkspaceIsBoundAndLookedAt(t *testing.T) {
	var asked []string
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, strings.TrimSpace(fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("Authorization"), " ",
			string(body))))
		_, _ = io.WriteString(w, `{"os":"linux","directory":"/pro\u009bject"}`)
	})
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Bind(t.Context()); err != nil {
		t.Error(err)
	}
	if info, err := c.Info(t.Context()); err != nil || info.OS != "linux" || info.Directory != "/pro ject" {
		t.Errorf("got %+v, %v", info, err)
	}
	want := []string{
		"GET /v1/health", `PUT /v1/binding Bearer good {"chat":"` + fakeworkspace.Chat + `"}`, "GET /v1/info Bearer good",
	}
	check.Equal(t, "result", want, asked)
}
