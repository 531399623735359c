// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/waiting"
)

// numbers checks that a text is lines with the numbers from 1 on, each once, up to the last one.
func numbers(t *testing.T, text string, last int) {
	t.Helper()
	next := 1
	for line := range strings.Lines(text) {
		if n, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err != nil || n != next {
			t.Fatalf("line %d is %q", next, line)
		}
		next++
	}
	if next-1 != last {
		t.Fatalf("the last line is %d and not %d", next-1, last)
	}
}

func TestServingProcessCrashesNeitherLoseNorDuplicateOutput(t *testing.T) {
	for _, c := range []struct {
		name, command string
		lines         int
	}{
		{"many lines at once", "seq 1200000", 1200000},
		{"one after the other", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo $i; done", 60000},
		{"now and then", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo $i; sleep 0.005; done", 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(t)
			p := a.start(c.command)
			crashes := 0
			for a.must("Get", Ask{ID: p.ID}).Process.State == protocol.Running {
				a.crash()
				crashes++
				// The next one comes at another moment of what happens after the start.
				<-time.After(time.Duration(rand.IntN(4000)) * time.Microsecond)
			}
			exits(t, a.wait(p.ID), 0)
			var all bytes.Buffer
			for all.Len() < int(a.must("Get", Ask{ID: p.ID}).Process.OutputBytes) {
				told := a.must("Output", Ask{ID: p.ID, From: int64(all.Len()), Limit: 4 << 20})
				if told.From != int64(all.Len()) || len(told.Contents) == 0 {
					t.Fatalf("from %d on: %d bytes from %d on", all.Len(), len(told.Contents), told.From)
				}
				all.Write(told.Contents)
			}
			numbers(t, all.String(), c.lines)
			t.Logf("%d kills", crashes)
		})
	}
}

func TestWhatHappensWhileNobodyServesIsKnownAfterwards(t *testing.T) {
	a := newAgent(t)
	p := a.start("until [ -e gate ]; do sleep 0.01; done; echo late; exit 9")
	holding := a.start("echo begun; (until [ -e gate ]; do sleep 0.01; done; echo later; exec sleep 60) & exit 0")
	a.wait(holding.ID)
	serving := a.serving()
	if err := serving.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.settings.Directory, "gate"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, patience, "only those that stay are there", func() bool { return len(a.below()) == 3 })
	if err := serving.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.hangUp()
	exits(t, a.wait(p.ID), 9)
	if out := a.output(p.ID); out != "late\n" {
		t.Errorf("got %q", out)
	}
	a.until(holding.ID, "begun\nlater\n")
}

func TestContainerStopRecordsExitsWithoutServingProcess(t *testing.T) {
	a := newAgent(t, func(s *settings) { s.Backoff = time.Hour })
	p := a.start("echo begun; exec sleep 60")
	a.until(p.ID, "begun\n")
	a.crash()
	waiting.Until(t, patience, "nobody serves", func() bool { return len(a.below()) == 2 })
	a.stop()
	a.boot()
	killed(t, a.wait(p.ID), "SIGTERM")
	if out := a.output(p.ID); out != "begun\n" {
		t.Errorf("got %q", out)
	}
}

func TestContainerStopRecordsExitsDespiteKilledServingProcess(t *testing.T) {
	a := newAgent(t)
	p := a.start("trap 'exit 8' TERM; echo begun; while :; do sleep 0.01; done")
	a.until(p.ID, "begun\n")
	first := a.serving()
	if err := errors.Join(first.Signal(unix.SIGSTOP), a.program.Process.Signal(unix.SIGTERM)); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, patience, "the command has ended", func() bool { return len(a.below()) == 1 })
	if err := first.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, patience, "its successor is killed, or was quicker", func() bool {
		for _, next := range a.below() {
			if next.PID != first.PID && next.Signal(unix.SIGKILL) == nil {
				return true
			}
		}
		return a.hasEnded()
	})
	a.ends()
	a.boot()
	exits(t, a.wait(p.ID), 8)
}

func TestCommandKeySurvivesServingProcessKill(t *testing.T) {
	a := newAgent(t)
	for i := range 30 {
		key := fmt.Sprint("key-", i)
		request := protocol.StartRequest{Command: "echo run >> runs-" + key + "; sleep 0.05"}
		done := make(chan struct{})
		serving := a.serving()
		go func() { // It dies while it starts the command.
			defer close(done)
			<-time.After(time.Duration(rand.IntN(3000)) * time.Microsecond)
			_ = serving.Signal(unix.SIGKILL) // It is there.
		}()
		p := a.must("Start", Ask{Key: key, Request: request}).Process
		<-done
		if again := a.must("Start", Ask{Key: key, Request: request}).Process; again.ID != p.ID {
			t.Fatalf("%s was started as %s and as %s", key, p.ID, again.ID)
		}
		exits(t, a.wait(p.ID), 0)
		if _, runs := a.run("cat runs-" + key); runs != "run\n" {
			t.Fatalf("%s ran: %q", key, runs)
		}
	}
}

func TestContainerRestartLosesRunningCommandsWithoutRerunningKeys(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			a := newAgent(t, append(mode.with, func(s *settings) { s.Main = []string{"sleep", "60"} })...)
			a.appears("p1")
			ran, _ := a.run("echo done; exit 3")
			request := protocol.StartRequest{Command: "echo run >> runs; echo begun; exec sleep 60"}
			p := a.must("Start", Ask{Key: "long", Request: request}).Process
			a.until(p.ID, "begun\n")
			a.restart()
			got := a.must("Start", Ask{Key: "long", Request: request}).Process
			if got.ID != p.ID || got.State != protocol.Lost || got.EndedAt.IsZero() || got.ExitCode != nil ||
				!strings.Contains(got.Note, "restart") || a.output(p.ID) != "begun\n" {
				t.Errorf("got %+v", got)
			}
			refusal(t, a.ask("Signal", Ask{ID: p.ID, Signal: protocol.Kill}), protocol.NotRunning)
			if before := a.wait(ran.ID); *before.ExitCode != 3 || a.output(ran.ID) != "done\n" {
				t.Errorf("what had ended before is %+v", before)
			}
			a.appears("p4")
			if main := a.must("Get", Ask{ID: "p4"}).Process; main.Key != "main" || main.State != protocol.Running {
				t.Errorf("the main process was not started again: %+v", main)
			}
			if next, runs := a.run("cat runs"); runs != "run\n" || next.ID != "p5" {
				t.Errorf("it ran %q, and the next one is %s", runs, next.ID)
			}
		})
	}
}

func TestStartInterruptedByContainerDeathIsNotRepeated(t *testing.T) {
	a := newAgent(t)
	p, _ := a.run("echo run >> runs")
	a.kill()
	// As if it had died between the intent and the fork, or just after it.
	record := filepath.Join(a.settings.State, "processes", p.ID, "record.json")
	raw := []byte(`{"id":"p1","key":"begun","command":"echo run >> runs","dir":"/","state":"Running",` +
		`"startedAt":"2026-01-02T03:04:05Z","outputBytes":0,"boot":"former","starting":true}`)
	if err := os.WriteFile(record, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	a.boot()
	got := a.must("Start", Ask{Key: "begun", Request: protocol.StartRequest{Command: "echo run >> runs"}}).Process
	if got.ID != p.ID || got.State != protocol.Lost || !strings.Contains(got.Note, "not known whether") {
		t.Errorf("got %+v", got)
	}
	if _, runs := a.run("cat runs"); runs != "run\n" {
		t.Errorf("it ran: %q", runs)
	}
}

func TestCorruptStateDirectoryIsRecoveredWherePossible(t *testing.T) {
	a := newAgent(t)
	a.run("echo first")
	running := a.start("echo begun; exec sleep 60")
	a.until(running.ID, "begun\n")
	kept, _ := a.run("echo third")
	alsoRunning := a.start("echo begun; exec sleep 60")
	a.until(alsoRunning.ID, "begun\n")
	processes := filepath.Join(a.settings.State, "processes")
	for _, broken := range []string{
		"rm p1/record.json p4/record.json", "rm -r p2", "mkdir p9223372036854775807",
		"mkdir p17 notes p018 && touch p19", "mkdir p20 && mkfifo p20/record.json",
		"mkdir p21 && echo '{\"id\":\"p1\"}' > p21/record.json", "mkdir p22 && echo '{' > p22/record.json",
		"cd p3 && mkfifo output.99 && ln -s /etc/passwd output.6 && touch output.-1 output.x",
	} {
		if p, _ := a.run("cd " + processes + " && " + broken); *p.ExitCode != 0 {
			t.Fatalf("%s: %+v", broken, p)
		}
	}
	a.crash()
	a.hangUp()
	refusal(t, a.ask("Get", Ask{ID: "p1"}), protocol.NotFound)
	if p := a.must("Get", Ask{ID: running.ID}).Process; p.State != protocol.Running || p.Note == "" {
		t.Errorf("what runs is %+v", p)
	}
	also := a.must("Get", Ask{ID: alsoRunning.ID}).Process
	if out := a.output(also.ID); also.Note == "" || out != "begun\n" {
		t.Errorf("what also runs is %+v and has written %q", also, out)
	}
	if out := a.output(kept.ID); out != "third\n" {
		t.Errorf("got %q", out)
	}
	a.must("Signal", Ask{ID: running.ID, Signal: protocol.Kill})
	killed(t, a.wait(running.ID), "SIGKILL")
	if p, _ := a.run("true"); p.ID != "p23" {
		t.Errorf("the next one is %s", p.ID)
	}
}
