// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeworkspace"
	"parley.dev/parley/test/kit/waiting"
)

func TestProcessOutputWaitsWithoutAskingAgainAndAgain(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(*fakeworkspace.Process) {}
	p := b.agent.Begin("other", "make")
	p.Say("before\n")
	got := b.good("process_output", `{"process_id":"p1","wait_timeout":0}`)
	want := map[string]any{"process_id": "p1", "state": "running", "output": "before\n", "output_bytes": 7.0,
		"note": "It runs on. A longer wait_timeout waits for its end, process_signal ends it."}
	check.Equal(t, "a look", want, got)
	if slices.ContainsFunc(b.agent.Requests(), func(r string) bool { return strings.Contains(r, "wait=") }) {
		t.Errorf("a look has waited: %q", b.agent.Requests())
	}
	if got := b.good("process_output", `{"process_id":"p1","wait_timeout":2}`); got["state"] != "running" {
		t.Errorf("a wait that is over: %v", got)
	}
	looks := len(b.agent.Requests())
	b.agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("wait") != "" && !strings.HasSuffix(r.URL.Path, "/output") {
			// What a process has written is shown while it runs.
			waiting.Until(t, time.Minute, "the output is shown", func() bool { return b.seen() != "" })
			p.Say("after\n")
			p.Exit(1)
		}
		return false
	}
	got = b.good("process_output", `{"process_id":"p1","wait_timeout":14400}`)
	want = map[string]any{"process_id": "p1", "state": "exited", "output": "before\nafter\n", "output_bytes": 13.0,
		"exit_code": 1.0}
	check.Equal(t, "a wait", want, got)
	if asked := b.agent.Requests()[looks:]; len(asked) > 6 {
		t.Errorf("asked were %q", asked)
	}
	if !strings.HasPrefix(b.seen(), "before\n") {
		t.Errorf("shown was %q", b.seen())
	}
	check.Equal(t, "error", "There is no process p9 (NotFound)", b.fail("process_output", `{"process_id":"p9"}`))
	check.Contains(t, b.fail("process_output", `{"process_id":"../x"}`), "there is no process")
}

// Security (a hostile model): can leave commands running in the background when its chat is interrupted, or is a
// sub-chat that is deleted, until the workspace stops. Also TestDeletedSubChatCancelsOnlyItsOwnCommand of test/e2e.
func TestAnInterruptedWaitLeavesTheProcessAlone(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(*fakeworkspace.Process) {}
	p := b.agent.Begin("other", "serve")
	b.agent.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("wait") != "" {
			b.interrupt()
		}
		return false
	}
	if _, err := b.call("process_output", `{"process_id":"p1","wait_timeout":600}`); err == nil {
		t.Error("the wait had a result")
	}
	check.Equal(t, "signals", 0, len(p.Signals))
}

func TestTheListHasWhatRunsFirst(t *testing.T) {
	b := newBench(t)
	b.agent.Run = func(*fakeworkspace.Process) {}
	b.agent.Begin("main", "sleep\x1b[2J infinity")
	for i := range 60 {
		b.agent.Begin(fmt.Sprint("k", i), strings.Repeat("x", 1000)).Exit(i)
	}
	got := b.good("process_list", "{}")
	list, _ := got["processes"].([]any)
	if len(list) != maxListed || got["note"] != "There are 11 more." {
		t.Fatalf("%d are listed, %v", len(list), got["note"])
	}
	first, _ := list[0].(map[string]any)
	fields(t, first, map[string]any{"process_id": "p1", "state": "running", "command": "sleep[2J infinity"})
	second, _ := list[1].(map[string]any)
	if command, _ := second["command"].(string); second["process_id"] != "p61" || second["exit_code"] != 59.0 ||
		len(command) > shownCommand+3 {
		t.Errorf("the second is %v", second)
	}
}

func TestAnEmptyListIsAList(t *testing.T) {
	if got := newBench(t).good("process_list", "{}"); len(got["processes"].([]any)) != 0 || got["note"] != nil {
		t.Errorf("got %v", got)
	}
}

func TestASignalIsSentAndItsEffectTold(t *testing.T) {
	for name, c := range map[string]struct {
		signal protocol.Signal
		run    func(p *fakeworkspace.Process)
		want   map[string]any
	}{
		"it ends": {
			protocol.Terminate, func(p *fakeworkspace.Process) { <-p.Signals; p.Kill("SIGTERM") },
			map[string]any{"state": "exited", "signal": "SIGTERM"},
		},
		"it continues": {
			protocol.Interrupt, func(p *fakeworkspace.Process) { <-p.Signals; untilEnded(p) },
			map[string]any{"state": "running",
				"note": "It has not ended yet: process_output waits for that, and the signal kill ends it."},
		},
		"it is killed": {
			protocol.Kill, untilEnded, map[string]any{"state": "exited", "signal": "SIGKILL"},
		},
		"it had ended": {
			protocol.Kill, func(p *fakeworkspace.Process) { p.Exit(4) },
			map[string]any{"state": "exited", "exit_code": 4.0, "note": "It had ended before."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.agent.Run = func(*fakeworkspace.Process) {}
			p := b.agent.Begin("other", "serve")
			if name == "it had ended" {
				c.run(p)
			} else {
				go c.run(p)
			}
			c.want["process_id"] = "p1"
			got := b.good("process_signal", fmt.Sprintf(`{"process_id":"p1","signal":%q}`, c.signal))
			check.Equal(t, "result", c.want, got)
		})
	}
}

func TestRepeatedCallSendsNoSecondInterrupt(t *testing.T) {
	for signal, c := range map[protocol.Signal]struct {
		sent int
		note string
	}{
		protocol.Interrupt: {0, "it may have been sent or not"}, protocol.Terminate: {1, "It has not ended yet"},
	} {
		t.Run(string(signal), func(t *testing.T) {
			b := newBench(t)
			b.agent.Run = func(*fakeworkspace.Process) {}
			p := b.agent.Begin("other", "serve")
			b.again = true
			got := b.good("process_signal", fmt.Sprintf(`{"process_id":"p1","signal":%q}`, signal))
			fields(t, got, map[string]any{"state": "running", "note": containing(c.note)})
			check.Equal(t, "signals", c.sent, len(p.Signals))
		})
	}
}
