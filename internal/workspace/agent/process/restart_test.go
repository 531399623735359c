// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// TestCommandKeyRunsOnceAcrossContainerKills: the container ends while it starts the command.
func TestCommandKeyRunsOnceAcrossContainerKills(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	for i := range 10 {
		key := fmt.Sprint("key-", i)
		ask := Ask{Key: key, Request: protocol.StartRequest{Command: "echo run >> runs-" + key}}
		client := a.connected()
		call := client.Go("Service.Start", ask, &Reply{}, nil)
		<-time.After(time.Duration(rand.IntN(6000)) * time.Microsecond)
		a.restart()
		<-call.Done
		p := a.wait(a.must("Start", ask).Process.ID)
		_, runs := a.run("cat runs-" + key + "; true")
		if runs != "run\n" && (p.State != protocol.Lost || strings.Contains(runs, "run\n")) {
			t.Fatalf("%s is %+v, and ran: %q", key, p, runs)
		}
	}
}

// Security (a hostile workspace): can end its own container by using up its memory or by a forged fault: the kubelet
// restarts it, and its commands are lost.
func TestContainerRestartLosesRunningCommandsWithoutRerunningKeys(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	a := newAgent(t)
	p, _ := a.run("echo run >> runs")
	a.kill()
	// As if it had died between the intent and the fork, or just after it.
	record := filepath.Join(a.settings.State, "processes", p.ID, "record.json")
	raw := []byte(`{"id":"p1","key":"begun","command":"echo run >> runs","dir":"/","state":"Running",` +
		`"startedAt":"2026-01-02T03:04:05Z","outputBytes":0,"starting":true}`)
	check.OK(t, os.WriteFile(record, raw, 0o600))
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
	t.Parallel()
	a := newAgent(t)
	a.run("echo first")
	a.run("echo second")
	kept, _ := a.run("echo third")
	processes := filepath.Join(a.settings.State, "processes")
	for _, broken := range []string{
		"rm p1/record.json", "rm -r p2", "mkdir p9223372036854775807",
		"mkdir p17 notes p018 && touch p19", "mkdir p20 && mkfifo p20/record.json",
		"mkdir p21 && echo '{\"id\":\"p1\"}' > p21/record.json", "mkdir p22 && echo '{' > p22/record.json",
		"cd p3 && mkfifo output.99 && ln -s /etc/passwd output.6 && touch output.-1 output.x",
	} {
		mustRun(t, a, "cd "+processes+" && "+broken)
	}
	a.restart()
	for _, id := range []string{"p1", "p2", "p17", "p20", "p21", "p22"} {
		refusal(t, a.ask("Get", Ask{ID: id}), protocol.NotFound)
	}
	if out := a.output(kept.ID); out != "third\n" {
		t.Errorf("got %q", out)
	}
	if p, _ := a.run("true"); p.ID != "p23" {
		t.Errorf("the next one is %s", p.ID)
	}
}

func TestAgentWaitsForStateDirectoryOfAnother(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	a.run("echo first")
	other := newAgent(t, func(s *settings) { s.State, s.Directory = a.settings.State, a.settings.Directory })
	if reply, err := other.try("List", Ask{}); err == nil {
		t.Errorf("it answers %+v", reply)
	}
	a.stop()
	if list := other.must("List", Ask{}).List; len(list) != 1 {
		t.Errorf("it remembers %+v", list)
	}
}
