// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// alone waits until nothing is left below the agent, not even a zombie.
func (a *agent) alone() {
	a.t.Helper()
	a.onlyLeft(0)
}

// onlyLeft waits until so many processes are left below the agent, zombies included.
func (a *agent) onlyLeft(processes int) {
	a.t.Helper()
	waiting.Until(a.t, patience, fmt.Sprintf("%d processes are left", processes), func() bool {
		all, err := proctree.All()
		return err == nil && len(proctree.Below(all, a.program.Process.Pid)) == processes
	})
}

// modes are the ways in which the agent gets orphans as its children.
var modes = []struct {
	name string
	with []func(*settings)
}{{name: "adopting orphans"}, {name: "as process 1", with: []func(*settings){inNamespace}}}

// trees are commands that start others, and then write "ready". Of all that they start, sleeps run for a minute.
var trees = []struct{ name, command string }{
	{"a child", "sleep 60 & echo ready; wait"},
	{"ignoring what it can", "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done"},
	{"a process group of its own", "set -m; sleep 60 & echo ready; wait"},
	{"a session of its own", "setsid sleep 60 & echo ready; wait"},
	{"a daemon, forked twice",
		"(setsid sh -c 'sleep 60 & exec sleep 61' >/dev/null 2>&1 </dev/null &); echo ready; exec sleep 60"},
	{"a session without an environment", "setsid env -i sleep 60 & echo ready; wait"},
	{"an orphan without an environment", "(setsid env -i sleep 60 >/dev/null 2>&1 &); echo ready; exec sleep 60"},
	{"a child that ignores a hangup", "nohup sleep 60 >/dev/null 2>&1 & echo ready; wait"},
	{"a daemon without descriptors",
		"setsid env -i sh -c 'exec 0<&- 1>&- 2>&-; sleep 60 & exit' & echo ready; exec sleep 60"},
	{"a stopped child", "sleep 60 & kill -STOP $!; echo ready; wait"},
	{"forking all the time", "f() { sleep 0.01 & sleep 0.01; f; }; echo ready; f"},
}

func TestKillEndsOnlyTheCommandAndItsDescendants(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		a := newAgent(t, mode.with...)
		other := a.start("exec sleep 60")
		for _, tree := range trees {
			t.Run(mode.name+"/"+tree.name, func(t *testing.T) {
				a.t = t
				p := a.start(tree.command)
				a.until(p.ID, "ready\n")
				a.must("Signal", Ask{ID: p.ID, Signal: protocol.Kill})
				killed(t, a.wait(p.ID), "SIGKILL")
				a.onlyLeft(2) // It waits for less than the minute after which all end by themselves.
				if p := a.must("Get", Ask{ID: other.ID}).Process; p.State != protocol.Running {
					t.Errorf("another command is %+v", p)
				}
			})
		}
		a.t = t
	}
}

func TestASignalReachesEveryProcessOnce(t *testing.T) {
	t.Parallel()
	names := map[protocol.Signal]string{protocol.Interrupt: "interrupt", protocol.Terminate: "terminated"}
	for signal, name := range names {
		t.Run(string(signal), func(t *testing.T) {
			a := newAgent(t)
			p := a.startHelper(listenerVariable + "=leader")
			for _, who := range listeners {
				a.until(p.ID, who+" is up\n")
			}
			a.must("Signal", Ask{ID: p.ID, Signal: signal})
			for _, who := range listeners {
				a.until(p.ID, who+" has "+name+"\n")
			}
			a.must("Signal", Ask{ID: p.ID, Signal: protocol.Kill})
			a.wait(p.ID)
			if out := a.output(p.ID); strings.Count(out, name) != len(listeners) {
				t.Errorf("got %s", out)
			}
		})
	}
}

func TestCommandExitsWithItsProcessDespiteRunningChildren(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	mustRun(t, a, "mkfifo gate")
	p := a.start("echo one; (read line < gate; echo two; exec sleep 60) & exit 5")
	exits(t, a.wait(p.ID), 5)
	if out := a.output(p.ID); out != "one\n" {
		t.Errorf("got %q", out)
	}
	mustRun(t, a, "echo go > gate")
	a.until(p.ID, "one\ntwo\n")
	a.must("Signal", Ask{ID: p.ID, Signal: protocol.Kill})
	a.alone()
	refusal(t, a.ask("Signal", Ask{ID: p.ID, Signal: protocol.Kill}), protocol.NotRunning)
	exits(t, a.wait(p.ID), 5)
}

// mustRun runs a command that must succeed.
func mustRun(t *testing.T, a *agent, command string) {
	t.Helper()
	p, out := a.run(command)
	if p.ExitCode == nil || *p.ExitCode != 0 {
		t.Fatalf("%s: %+v: %s", command, p, out)
	}
}

func TestCommandExitIsReportedWhileChildrenKeepWriting(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := a.start("echo first; yes & exit 6")
	exits(t, a.wait(p.ID), 6)
	a.must("Signal", Ask{ID: p.ID, Signal: protocol.Kill})
	a.alone()
}

func TestUnknownSignalIsRefused(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := a.start("exec sleep 60")
	refusal(t, a.ask("Signal", Ask{ID: p.ID, Signal: "stop"}), protocol.BadRequest)
	refusal(t, a.ask("Signal", Ask{ID: "p9", Signal: protocol.Kill}), protocol.NotFound)
	a.must("Signal", Ask{ID: p.ID, Signal: protocol.Interrupt})
	killed(t, a.wait(p.ID), "SIGINT")
	refusal(t, a.ask("Signal", Ask{ID: p.ID, Signal: protocol.Terminate}), protocol.NotRunning)
}

func TestAStoppedContainerEndsAllAndRemembersHow(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			a := newAgent(t, append(mode.with, func(s *settings) { s.Grace = 500 * time.Millisecond })...)
			polite := a.start("trap 'echo bye; exit 8' TERM; echo ready; while :; do sleep 0.01; done")
			stubborn := a.start("trap '' TERM; echo ready; while :; do sleep 0.01; done")
			daemon := a.start("setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 0.01; done' & exec sleep 60")
			for _, p := range []protocol.Process{polite, stubborn, daemon} {
				a.until(p.ID, "ready\n")
			}
			check.OK(t, a.program.Process.Signal(unix.SIGTERM)) // The second one changes nothing.
			a.stop()
			a.boot()
			exits(t, a.wait(polite.ID), 8)
			killed(t, a.wait(stubborn.ID), "SIGKILL")
			killed(t, a.wait(daemon.ID), "SIGTERM")
			if note := a.wait(polite.ID).Note; !strings.Contains(note, "stopped") {
				t.Errorf("the note is %q", note)
			}
			if out := a.output(polite.ID); !strings.HasSuffix(out, "bye\n") {
				t.Errorf("got %q", out)
			}
		})
	}
}

func TestCommandWithExitedMainThreadIsStillRunning(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := a.startHelper(headlessVariable + "=1")
	a.until(p.ID, "up\n")
	a.stop()
	a.boot()
	exits(t, a.wait(p.ID), 8)
	if out := a.output(p.ID); out != "up\nbye\n" {
		t.Errorf("got %q", out)
	}
}
