// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
	"parley.dev/parley/test/kit/waiting"
)

// untilEnded lets a process be until it is ended.
func untilEnded(p *fakeworkspace.Process) { p.Ended(context.Background()) }

func TestACommandIsRunAndItsEndTold(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(p *fakeworkspace.Process)
		want map[string]any
	}{
		"success": {
			func(p *fakeworkspace.Process) { p.Say("hello\n"); p.Exit(0) },
			map[string]any{"success": true, "output": "hello\n", "exit_code": 0.0},
		},
		"failure": {
			func(p *fakeworkspace.Process) { p.Say("no\x1b[31m such file\r\n"); p.Exit(2) },
			map[string]any{"success": false, "output": "no such file\n", "exit_code": 2.0},
		},
		"a signal": {
			func(p *fakeworkspace.Process) { p.Kill("SIGSEGV") },
			map[string]any{"success": false, "output": "", "signal": "SIGSEGV", "error": "the command was ended by SIGSEGV"},
		},
		"a restart of the workspace": {
			func(p *fakeworkspace.Process) { p.Say("half"); p.Lose() },
			map[string]any{"success": false, "output": "half",
				"error": "the workspace was restarted while the command ran, which ended it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.agent.Run = c.run
			got := b.good("execute", `{"command":"make","workdir":"src"}`)
			if ms, ok := got["wall_duration_ms"].(float64); !ok || ms < 0 {
				t.Errorf("it lasted %v", got["wall_duration_ms"])
			}
			delete(got, "wall_duration_ms")
			check.Equal(t, "result", c.want, got)
			want := protocol.StartRequest{Command: "make", Dir: "src"}
			check.Equal(t, "started with", want, b.agent.Processes()[0].Asked)
			check.Equal(t, "first request", "PUT /v1/processes/"+key, b.agent.Requests()[0])
		})
	}
}

func TestCommandTimeoutKeepsCommandRunningInBackground(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(p *fakeworkspace.Process) { p.Say("begun\n"); untilEnded(p) }
	got := b.good("execute", `{"command":"make","timeout":3}`)
	if got["success"] != false || got["output"] != "begun\n" || got["background_process_id"] != "p1" ||
		got["error"] != "the command has not ended within 3 s" ||
		!has(got["note"], "process p1") || !has(got["note"], "process_output") || !has(got["note"], "process_signal") {
		t.Errorf("got %v", got)
	}
	p := b.agent.Processes()[0]
	check.Equal(t, "signals", 0, len(p.Signals))
	p.Say("ended\n")
	p.Exit(0)
	fields(t, b.good("process_output", `{"process_id":"p1"}`), map[string]any{
		"output": "begun\nended\n", "state": "exited", "exit_code": 0.0})
}

func TestBackgroundCommandReturnsWithoutWaiting(t *testing.T) {
	for name, input := range map[string]string{
		"by the argument":            `{"command":"serve","run_in_background":true}`,
		"by an ampersand":            `{"command":"serve &","timeout":14400}`,
		"by both":                    `{"command":"serve & ","run_in_background":true}`,
		"by an ampersand and a line": `{"command":"serve &\n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.agent.Run = untilEnded
			got := b.good("execute", input)
			fields(t, got, map[string]any{
				"success": true, "background_process_id": "p1", "note": containing("process_output")})
			check.Equal(t, "command", "serve", b.agent.Processes()[0].Asked.Command)
		})
	}
}

func TestInterruptTerminatesAwaitedCommand(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(p *fakeworkspace.Process, s protocol.Signal) bool
		want map[string]any
	}{
		"one that heeds it": {
			func(p *fakeworkspace.Process, s protocol.Signal) bool {
				p.Say("cleaned up\n")
				p.Kill("SIGTERM")
				return s == protocol.Terminate
			},
			map[string]any{"output": "begun\ncleaned up\n", "signal": "SIGTERM"},
		},
		"one that does not": {
			func(_ *fakeworkspace.Process, s protocol.Signal) bool { return s == protocol.Kill },
			map[string]any{"output": "begun\n", "signal": "SIGKILL"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			signalled := make(chan protocol.Signal, 4)
			b.agent.Run = func(p *fakeworkspace.Process) {
				p.Say("begun\n")
				b.interrupt()
				for s := range p.Signals {
					signalled <- s
					if c.ends(p, s) {
						return
					}
				}
			}
			got := b.good("execute", `{"command":"make","timeout":600}`)
			fields(t, got, map[string]any{
				"success": false, "error": "the chat was interrupted, and the command was ended",
				"output": c.want["output"], "signal": c.want["signal"]})
			check.Equal(t, "first signal", protocol.Terminate, <-signalled)
		})
	}
}

func TestCommandEndingDuringInterruptReturnsItsResult(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(p *fakeworkspace.Process) { p.Say("done\n"); p.Exit(0) }
	b.agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/output") && b.agent.Processes()[0].Describe().State != protocol.Running {
			b.interrupt()
		}
		return false
	}
	got := b.good("execute", `{"command":"make","timeout":600}`)
	fields(t, got, map[string]any{"success": true, "output": "done\n"})
}

func TestCanceledCallLeavesCommandRunningForNextAttempt(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.ctx = ctx
	b.agent.Run = func(p *fakeworkspace.Process) { cancel(); untilEnded(p) }
	if _, err := b.call("execute", `{"command":"make","timeout":600}`); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p := b.agent.Processes()[0]
	if len(p.Signals) != 0 || p.Describe().State != protocol.Running {
		t.Fatal("the command was ended")
	}
	b.ctx = t.Context()
	go func() { p.Say("whole\n"); p.Exit(0) }()
	if got := b.good("execute", `{"command":"make","timeout":600}`); got["output"] != "whole\n" ||
		len(b.agent.Processes()) != 1 {
		t.Errorf("the next attempt got %v of %d commands", got, len(b.agent.Processes()))
	}
}

func TestInterruptedCallStartsNothingAndEndsEarlierCommand(t *testing.T) {
	b := newBench(t)
	b.agent.Run = untilEnded
	b.interrupt()
	if _, err := b.call("execute", `{"command":"rm -rf ."}`); err == nil || len(b.agent.Processes()) != 0 {
		t.Errorf("started were %d commands, %v", len(b.agent.Processes()), err)
	}
	p := b.agent.Begin(key, "rm -rf .")
	got := b.good("execute", `{"command":"rm -rf ."}`)
	if got["error"] != "the chat was interrupted, and the command was ended" || p.Describe().Signal != "SIGKILL" {
		t.Errorf("got %v of %+v", got, p.Describe())
	}
}

func TestInterruptDuringCommandStartEndsTheCommand(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(p *fakeworkspace.Process) { <-p.Signals; p.Kill("SIGTERM") }
	b.agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			b.interrupt()
		}
		return false
	}
	got := b.good("execute", `{"command":"make","timeout":600}`)
	fields(t, got, map[string]any{"signal": "SIGTERM", "error": containing("the chat was interrupted")})
}

func TestAWorkspaceThatGoesAwayIsTold(t *testing.T) {
	b := newBench(t)
	b.agent.Run = untilEnded
	b.agent.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			return false
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
		return true
	}
	got := b.good("execute", `{"command":"make","timeout":600}`)
	fields(t, got, map[string]any{
		"success": false, "error": containing("cannot be reached"), "background_process_id": "p1",
		"note": containing("may still run")})
}

// Security (a hostile workspace): cannot flood the prompt, the stream or the disk with output: little of each command
// is shown, and the beginning and the end are kept. Also TestOutputFloodIsShownInBoundedChunks of
// internal/tools/workspace; TestGigabyteOutputKeepsHeadAndTail of internal/workspace/agent/process.
func TestLongOutputIsTruncatedToHeadAndTail(t *testing.T) {
	lines := func(n int) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "line %d\n", i)
		}
		return all.String()
	}
	const left = "bytes left out"
	for name, c := range map[string]struct {
		output          string
		begin, end, has string
		least, most     int
		whole           bool
	}{
		"a short one":         {lines(10), "line 0\n", "line 9\n", "", 70, 70, true},
		"a long one":          {lines(10_000), "line 0\n", "line 9999\n", left, 30 << 10, 32 << 10, false},
		"a very long one":     {lines(300_000), "line 0\n", "line 299999\n", left, 30 << 10, 32 << 10, false},
		"without a newline":   {strings.Repeat("x", 1_000_000), "xxx", "xxx", left, 30 << 10, 32 << 10, false},
		"wide characters":     {strings.Repeat("世界", 200_000), "世", "界", left, 30 << 10, 32 << 10, false},
		"what JSON escapes":   {strings.Repeat("\"\\\n", 100_000), "\"\\\n", "\"\\\n", left, 12 << 10, 32 << 10, false},
		"bytes that are none": {strings.Repeat("\xff", 600_000), "\ufffd", "\ufffd", left, 30 << 10, 32 << 10, false},
		"a long progress": {"begun\n" + strings.Repeat("10%\r", 100_000) + "100%\nended\n", "begun\n", "ended\n", "100%",
			17, 17, true},
		"a very long progress": {"begun\n" + strings.Repeat("10%\r", 500_000) + "100%\nended\n", "begun\n", "ended\n", left,
			17, 200, false},
		"nothing but sequences": {strings.Repeat("\x1b[0m", 200_000), "", "", left, 0, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.agent.Run = func(p *fakeworkspace.Process) { p.Say(c.output); p.Exit(0) }
			got := b.good("execute", `{"command":"make"}`)
			output, _ := got["output"].(string)
			if len(output) < c.least || len(output) > c.most || !strings.HasPrefix(output, c.begin) ||
				!strings.HasSuffix(output, c.end) || !strings.Contains(output, c.has) {
				t.Errorf("got %d bytes: %.50q ... %q", len(output), output, output[max(0, len(output)-50):])
			}
			if truncated := got["truncated"] == true; truncated == c.whole {
				t.Errorf("truncated is %v", got["truncated"])
			}
		})
	}
}

func TestASmallContextGetsLess(t *testing.T) {
	b := newBench(t)
	b.chat.Status.Context = &v1beta1.ContextStatus{Limit: 4000}
	b.agent.Run = func(p *fakeworkspace.Process) { p.Say(strings.Repeat("\"", 100_000)); p.Exit(0) }
	if output, _ := b.good("execute", `{"command":"make"}`)["output"].(string); len(output) > 8<<10 {
		t.Errorf("got %d bytes", len(output)) // Each is two in JSON, and bench.call looks at the whole.
	}
}

func TestDiscardedMiddleOfOutputIsMarkedAsOmitted(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(p *fakeworkspace.Process) {
		p.Say("head\n" + strings.Repeat("m", 400_000) + "tail\n")
		p.Forget(5, 400_000)
		p.Exit(0)
	}
	got := b.good("execute", `{"command":"make"}`)
	if output := got["output"]; output != "head\n\n[... 399995 bytes left out ...]\nmmmmmtail\n" {
		t.Errorf("got %.200v", output)
	}
}

func TestCommandOutputIsShownWhileRunning(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(p *fakeworkspace.Process) {
		for i, piece := range []string{"one\n", "two \xe4\xb8", "\x96\n", "10%\r", "20%\n"} {
			p.Say(piece)
			whole := []string{"one\n", "one\ntwo ", "one\ntwo 世\n", "one\ntwo 世\n10%", "one\ntwo 世\n10%\n20%\n"}[i]
			waiting.Until(t, 30*time.Second, "it is shown", func() bool { return b.seen() == whole })
		}
		p.Exit(0)
	}
	check.Equal(t, "output", "one\ntwo 世\n20%\n", b.good("execute", `{"command":"make","timeout":14400}`)["output"])
}

func TestOutputFloodIsShownInBoundedChunks(t *testing.T) {
	b := newBench(t)
	flood := strings.Repeat(strings.Repeat("f", 99)+"\n", 1000)
	b.agent.Run = func(p *fakeworkspace.Process) {
		for range 3 {
			before := len(b.seen())
			p.Say(flood)
			waiting.Until(t, 30*time.Second, "some of it is shown", func() bool { return len(b.seen()) > before })
		}
		p.Say("the end\n")
		waiting.Until(t, 30*time.Second, "the end is shown", func() bool { return strings.HasSuffix(b.seen(), "the end\n") })
		p.Exit(0)
	}
	b.good("execute", `{"command":"make","timeout":14400}`)
	for _, piece := range b.shown {
		if len(piece) > showBytes {
			t.Errorf("a piece has %d bytes", len(piece))
		}
	}
	if !strings.Contains(b.seen(), "bytes left out") {
		t.Error("nothing says that something is left out")
	}
	for i := 1; i < len(b.shownAt); i++ {
		if pause := b.shownAt[i].Sub(b.shownAt[i-1]); pause < showPause {
			t.Errorf("piece %d was shown %s after the one before", i, pause)
		}
	}
}

func TestUnusableWorkspaceReturnsReadableReason(t *testing.T) {
	b := newBench(t)
	b.use(Options{Workspaces: only{err: errors.New("its storage\x1b[2J is full")}, Now: time.Now})
	const want = "the workspace of this chat cannot be used: its storage [2J is full"
	for name, input := range map[string]string{
		"execute": `{"command":"x"}`, "process_list": `{}`, "process_output": `{"process_id":"p1"}`,
		"process_signal": `{"process_id":"p1","signal":"kill"}`, "read_file": `{"path":"a"}`,
		"write_file": `{"path":"a","content":""}`, "search_files": `{"glob":"*"}`,
		"edit_files":  `{"edits":[{"path":"a","old_text":"","new_text":""}]}`,
		"attach_file": `{"path":"a"}`, "start_workspace": `{}`,
	} {
		check.Equal(t, "error", want, b.fail(name, input))
	}
	if len(b.tools) != 11 { // To stop it, it need not be usable.
		t.Errorf("there are %d tools", len(b.tools))
	}
}

func TestWorkspaceBoundToAnotherChatErrorSuggestsFix(t *testing.T) {
	b := newBench(t)
	refusal := &protocol.Error{Code: protocol.BoundToAnother, Message: "This workspace belongs to another chat."}
	b.use(Options{Workspaces: only{err: fmt.Errorf("binding it: %w", refusal)}, Now: time.Now})
	if _, err := b.call("execute", `{"command":"x"}`); err == nil ||
		!strings.Contains(err.Error(), "(BoundToAnother): a person has to name another pod") {
		t.Errorf("got %v", err)
	}
}

func TestRefusalsTellTheModelWhatToDo(t *testing.T) {
	for code, want := range map[protocol.ErrorCode]string{
		protocol.TooMany:        "Too many (TooMany). Wait for a command",
		protocol.CannotStart:    "Too many (CannotStart)",
		protocol.NoShell:        "Commands cannot be run in this workspace",
		protocol.BoundToAnother: "refuses to work for this one (BoundToAnother): a person has to name another pod",
	} {
		b := newBench(t)
		b.agent.Before = func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintf(w, `{"code":%q,"message":"Too many."}`, code)
			return true
		}
		check.Contains(t, b.fail("execute", `{"command":"x"}`), want)
	}
}

func TestNoAddressReachesTheModel(t *testing.T) {
	b := newBench(t)
	o := fakeworkspace.OptionsOf("http://127.0.0.1:1", fakeworkspace.Chat)
	b.use(Options{Workspaces: only{client: client.New(o)}, Now: time.Now})
	if _, err := b.call("read_file", `{"path":"x"}`); err == nil || strings.Contains(err.Error(), "127.0.0.1") ||
		!strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
}
