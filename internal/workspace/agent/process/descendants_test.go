// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/supervisor"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// escapes are commands that exit at once, and leave "sleep 60" behind.
var escapes = []struct{ name, command string }{
	{"in the background", "sleep 60 & echo started"},
	{"in a session of its own", "setsid sleep 60 & echo started"},
	{"without an environment", "env -i sleep 60 & echo started"},
	{"in a session without an environment", "setsid env -i sh -c 'exec sleep 60' >/dev/null 2>&1 & echo started"},
	{"forked twice", "(setsid env -i sh -c 'sleep 60 & exit' >/dev/null 2>&1 </dev/null &); echo started"},
	{"ignoring a hangup", "nohup sleep 60 >/dev/null 2>&1 & echo started"},
	{"without descriptors", "(setsid env -i sh -c 'exec 0<&- 1>&- 2>&-; sleep 60 & exit' &); echo started"},
}

// left waits until a command has exited and is known to have left "sleep 60" behind, and nothing else.
func (a *agent) left(id string) (p protocol.Process) {
	a.t.Helper()
	exits(a.t, a.wait(id), 0)
	waiting.Until(a.t, patience, "it has left one process behind", func() bool {
		list := a.must("List", Ask{}).List
		i := slices.IndexFunc(list, func(p protocol.Process) bool { return p.ID == id })
		if i < 0 {
			a.t.Fatalf("%s is not listed: %+v", id, list)
		}
		p = list[i]
		return p.Descendants != nil && p.Descendants.Count == 1 && p.Descendants.First[0].Command == "sleep 60"
	})
	return p
}

// Security (a hostile workspace): cannot hide processes that a command left behind from process_list, nor from the
// limit on commands. Also TestCommandsThatLeaveProcessesBehindAreBounded of internal/workspace/agent/process.
func TestDescendantsAreListedUntilTheyEnd(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		a := newAgent(t, mode.with...)
		for _, escape := range escapes {
			t.Run(mode.name+"/"+escape.name, func(t *testing.T) {
				a.t = t
				id := a.start(escape.command).ID
				p := a.left(id)
				if p.Command != escape.command || a.must("List", Ask{}).Running != 1 {
					t.Errorf("listed is %+v", p)
				}
				a.must("Signal", Ask{ID: id, Signal: protocol.Terminate})
				waiting.Until(t, patience, "nothing runs", func() bool { return a.ask("List", Ask{}).Running == 0 })
				if p := a.must("Get", Ask{ID: id}).Process; p.Descendants != nil || p.Note != "" {
					t.Errorf("then it is %+v", p)
				}
				refusal(t, a.ask("Signal", Ask{ID: id, Signal: protocol.Kill}), protocol.NotRunning)
				a.alone()
			})
		}
		a.t = t
	}
}

func TestDescendantsHaveEverySignal(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	for _, signal := range []protocol.Signal{protocol.Interrupt, protocol.Terminate, protocol.Kill} {
		for _, escape := range escapes {
			t.Run(string(signal)+"/"+escape.name, func(t *testing.T) {
				a.t = t
				command := escape.command
				if signal == protocol.Interrupt { // A shell has what it starts in the background ignore it.
					command = strings.Replace(command, "sleep", "env --default-signal=INT sleep", 1)
				}
				p := a.left(a.start(command).ID)
				a.must("Signal", Ask{ID: p.ID, Signal: signal})
				a.alone()
			})
		}
	}
	a.t = t
}

func TestDescendantsEndWithTheContainer(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			a := newAgent(t, mode.with...)
			for _, escape := range escapes {
				a.left(a.start(escape.command).ID)
			}
			a.stop()
			a.boot()
			for _, p := range a.must("List", Ask{}).List {
				exits(t, p, 0)
			}
			a.alone()
		})
	}
}

func TestManyDescendantsAreCountedAndSomeShown(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	long := strings.Repeat("x", 500)
	p := a.start("for i in $(seq 15); do sh -c 'sleep 60; exit' " + long + " & done; echo started")
	a.wait(p.ID)
	waiting.Until(t, patience, "they are counted", func() bool {
		got := a.must("Get", Ask{ID: p.ID}).Process.Descendants
		return got != nil && got.Count == 30 && len(got.First) == 10 && len(got.First[0].Command) <= 200
	})
	a.must("Signal", Ask{ID: p.ID, Signal: protocol.Kill})
	a.alone()
}

// supervised is the supervisor of the only command.
func (a *agent) supervised() (pid int) {
	a.t.Helper()
	waiting.Until(a.t, patience, "there is a supervisor", func() bool {
		for _, p := range a.below() {
			if p.Parent == a.program.Process.Pid && p.CommandLine(100) == supervisor.Name {
				pid = p.PID
				return true
			}
		}
		return false
	})
	return pid
}

const orphansNote = "Its supervisor was killed, and all its processes were ended."

func TestACommandEndsWithItsSupervisor(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		a := newAgent(t, mode.with...)
		other := a.start("exec sleep 60")
		for _, tree := range trees {
			t.Run(mode.name+"/"+tree.name, func(t *testing.T) {
				a.t = t
				p := a.start("kill -9 $PPID; " + tree.command)
				killed(t, a.wait(p.ID), "SIGKILL")
				if p := a.wait(p.ID); p.Note != orphansNote {
					t.Errorf("it is %+v", p)
				}
				a.onlyLeft(2)
				if p := a.must("Get", Ask{ID: other.ID}).Process; p.State != protocol.Running {
					t.Errorf("another command is %+v", p)
				}
			})
		}
		a.t = t
	}
}

func TestDescendantsEndWithTheirSupervisor(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	for _, escape := range escapes {
		t.Run(escape.name, func(t *testing.T) {
			a.t = t
			p := a.left(a.start(escape.command).ID)
			check.OK(t, unix.Kill(a.supervised(), unix.SIGKILL))
			a.alone()
			waiting.Until(t, patience, "a note says so", func() bool {
				p = a.must("Get", Ask{ID: p.ID}).Process
				return p.Note == orphansNote
			})
			exits(t, p, 0)
		})
	}
	a.t = t
}

func TestACommandCannotStopItsSupervisor(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := a.start("for s in STOP TSTP TTIN TTOU HUP INT QUIT TERM USR1 PIPE SEGV ALRM; do kill -$s $PPID; done; exit 5")
	exits(t, a.wait(p.ID), 5)
	a.alone()
}

// Security (a hostile workspace): cannot end its own agent by a signal that it sends with kill, nor starve it by
// forking. Also TestAgentServesWithoutRoomForProcesses of internal/workspace/agent/process.
func TestSignalsOfCommandsDoNotEndTheAgent(t *testing.T) {
	t.Parallel()
	a := newAgent(t, inNamespace)
	other := a.start("exec sleep 60")
	mustRun(t, a, "for s in $(seq 31); do kill -$s 1; done")
	if p, out := a.run("echo next"); out != "next\n" || *p.ExitCode != 0 {
		t.Errorf("the next one is %+v, and has written %q", p, out)
	}
	a.stop()
	a.boot()
	killed(t, a.wait(other.ID), "SIGTERM")
}

func TestACommandThatKillsAllIsKilled(t *testing.T) {
	t.Parallel()
	a := newAgent(t, inNamespace)
	other := a.start("exec sleep 60")
	p := a.start("setsid sleep 60 & kill -9 -1; exec sleep 60")
	for _, id := range []string{other.ID, p.ID} {
		waiting.Until(t, patience, "it has ended", func() bool {
			return a.ask("Get", Ask{ID: id}).Process.State == protocol.Exited
		})
		killed(t, a.must("Get", Ask{ID: id}).Process, "SIGKILL")
	}
	a.alone()
	if p, out := a.run("echo next"); out != "next\n" || *p.ExitCode != 0 {
		t.Errorf("the next one is %+v, and has written %q", p, out)
	}
}

func TestASupervisorCannotBeLookedInto(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may look into every process")
	}
	a := newAgent(t)
	a.start("exec sleep 60")
	if _, err := os.ReadDir(filepath.Join("/proc", itoa(a.supervised()), "fd")); !os.IsPermission(err) {
		t.Errorf("its descriptors can be seen: %v", err)
	}
}

func TestOutputEndsWithItsCommandWhoeverHoldsIt(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	p := a.start("echo begun; echo $$ > pid; until [ -e held ]; do sleep 0.01; done; echo last; exit 3")
	a.until(p.ID, "begun\n")
	holder := a.start("exec sleep 60 3> /proc/$(cat pid)/fd/1")
	waiting.Until(t, patience, "another command holds it", func() bool {
		mustRun(t, a, "ls -l /proc/$(cat pid)/fd/1 > /dev/null")
		pid := 0
		for _, below := range a.below() {
			if below.CommandLine(100) == "sleep 60" {
				pid = below.PID
			}
		}
		_, err := os.Readlink(filepath.Join("/proc", itoa(pid), "fd", "3"))
		return err == nil
	})
	mustRun(t, a, "touch held")
	exits(t, a.wait(p.ID), 3)
	waiting.Until(t, patience, "nothing but the holder runs", func() bool { return a.ask("List", Ask{}).Running == 1 })
	if out := a.output(p.ID); out != "begun\nlast\n" {
		t.Errorf("got %q", out)
	}
	a.must("Signal", Ask{ID: holder.ID, Signal: protocol.Kill})
	a.alone()
}
