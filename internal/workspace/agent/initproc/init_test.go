// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"errors"
	"log/slog"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/supervisor"
	"parley.dev/parley/test/kit/check"
)

// now is the time of all tests.
var now = time.Unix(1000, 0)

// fake is an Init whose supervisors are no processes.
type fake struct {
	*Init
	t      testing.TB
	forked int
	killed []int
	refuse error
}

func newFake(t testing.TB) *fake {
	t.Helper()
	i, err := newInit(func() time.Time { return now }, slog.New(slog.DiscardHandler))
	check.OK(t, err)
	f := &fake{Init: i, t: t}
	f.system = system{
		fork: func(_ string, _ []string, attr *syscall.ProcAttr) (int, error) {
			if !attr.Sys.Setsid || len(attr.Files) != 5 {
				t.Errorf("forked with %+v", attr)
			}
			if f.refuse != nil {
				return 0, f.refuse
			}
			f.forked++
			return 100 + f.forked, nil
		},
		kill: func(pid int, _ syscall.Signal) error {
			f.killed = append(f.killed, pid)
			return nil
		},
	}
	t.Cleanup(func() {
		f.null.Close()
		f.reports.Close()
		f.reporter.Close()
	})
	return f
}

// launched is a command whose supervisor was forked, and the states of which it was notified.
type launched struct {
	*Command
	states []State
}

func (f *fake) launch() *launched {
	f.t.Helper()
	l := &launched{}
	c, err := f.Init.launch(&Spec{Path: "/bin/sh", Argv: []string{"sh"}}, func(s State) { l.states = append(l.states, s) })
	check.OK(f.t, err)
	f.t.Cleanup(func() { c.Output.Close() })
	l.Command = c
	return l
}

func (f *fake) report(pid int, kind supervisor.Kind, value int) {
	f.reported(supervisor.Report{Supervisor: pid, Kind: kind, Value: value})
}

func TestCommandReportsStartExitAndEnd(t *testing.T) {
	f := newFake(t)
	c := f.launch()
	f.report(101, supervisor.Started, 102)
	check.OK(t, <-c.started)
	f.report(101, supervisor.Exited, 256)
	f.ended(101, 0)
	exited := State{Exited: true, Status: 256, At: now}
	done := exited
	done.Done = true
	check.Equal(t, "states", []State{exited, done}, c.states)

	c = f.launch() // It leaves nothing behind.
	f.report(102, supervisor.Started, 103)
	f.report(102, supervisor.Over, 256)
	f.ended(102, 0)
	check.Equal(t, "states", []State{done}, c.states)
	check.Equal(t, "supervisors", 0, len(f.supervised))
}

func TestFailedStartReturnsTheErrno(t *testing.T) {
	f := newFake(t)
	for name, c := range map[string]struct {
		fails func()
		want  syscall.Errno
	}{
		"a fork":                    {func() { f.refuse = unix.E2BIG }, unix.E2BIG},
		"an exec":                   {func() { f.report(101, supervisor.Failed, int(unix.ENOENT)) }, unix.ENOENT},
		"a supervisor without room": {func() { f.ended(101, 2<<8) }, unix.EAGAIN},
		"while it stops":            {func() { f.stopping = true }, unix.ESHUTDOWN},
		"no program":                {func() {}, unix.EINVAL},
	} {
		t.Run(name, func(t *testing.T) {
			f = newFake(t)
			spec := &Spec{Path: "/bin/sh", Argv: []string{"sh"}}
			switch c.want {
			case unix.ENOENT, unix.EAGAIN: // after the fork
				fork := f.system.fork
				f.system.fork = func(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
					time.AfterFunc(time.Millisecond, func() {
						f.mu.Lock()
						defer f.mu.Unlock()
						c.fails()
					})
					return fork(path, argv, attr)
				}
			case unix.EINVAL:
				spec.Path = ""
			default:
				c.fails()
			}
			if _, err := f.Start(spec, func(s State) { t.Errorf("notified of %+v", s) }); !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestACommandWhoseSupervisorIsKilledEndsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		reports []supervisor.Kind
		status  syscall.WaitStatus
	}{
		"before it was started":      {nil, 9},
		"while it runs":              {[]supervisor.Kind{supervisor.Started}, 9},
		"while what it left runs":    {[]supervisor.Kind{supervisor.Started, supervisor.Exited}, 0},
		"reports that make no sense": {[]supervisor.Kind{supervisor.Started, supervisor.Started, supervisor.Failed, 99}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			l := f.launch()
			for _, kind := range c.reports {
				f.report(101, kind, 0)
			}
			f.ended(101, 9)
			f.endAdopted()
			check.OK(t, <-l.started)
			last := l.states[len(l.states)-1]
			check.Equal(t, "last state", State{Exited: true, Status: c.status, At: now, Done: true, Orphaned: true}, last)
			if slices.ContainsFunc(l.states[:len(l.states)-1], func(s State) bool { return s.Done }) {
				t.Errorf("it ended more than once: %+v", l.states)
			}
		})
	}
}

func TestStopKillsSupervisorsThatDoNotStart(t *testing.T) {
	f := newFake(t)
	f.launch()
	f.launch()
	f.report(101, supervisor.Started, 103)
	f.killStarting()
	check.Equal(t, "killed", []int{102}, f.killed)
}

func TestOnlySignalsFromOutsideStopTheContainer(t *testing.T) {
	const siUser, siQueue, pollIn = 0, -1, 1
	for name, c := range map[string]struct {
		signal signalInfo
		want   bool
	}{
		"the container runtime":  {signalInfo{Code: siUser}, true},
		"a command":              {signalInfo{Code: siUser, Sender: 17}, false},
		"one that forges its id": {signalInfo{Code: siQueue}, false},
		"one that has it sent":   {signalInfo{Code: pollIn}, false},
	} {
		check.Equal(t, name, c.want, c.signal.isFromOutside(1))
		check.Equal(t, name+", outside of a container", true, c.signal.isFromOutside(2))
	}
}
