// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/link"
)

// fake is process 1 of a system that forks in words alone.
type fake struct {
	*Init
	t      testing.TB
	forked []string
	killed []int
	refuse error
}

func newFake(t testing.TB) *fake {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Unix(1000, 0) }
	f := &fake{t: t, Init: &Init{Now: now, Log: slog.New(slog.DiscardHandler), null: null}}
	f.system = system{
		fork: func(path string, _ []string, attr *syscall.ProcAttr) (int, error) {
			if !attr.Sys.Setsid || len(attr.Files) != 3 {
				t.Errorf("forked with %+v", attr)
			}
			if f.refuse != nil {
				return 0, f.refuse
			}
			f.forked = append(f.forked, path)
			return 100 + len(f.forked), nil
		},
		kill: func(pid int, _ syscall.Signal) error {
			f.killed = append(f.killed, pid)
			return nil
		},
	}
	f.reset()
	f.serving = &serving{pid: 2, ended: make(chan struct{}), out: outbox{wake: make(chan struct{}, 1)}}
	t.Cleanup(func() {
		null.Close()
		for _, c := range f.commands {
			unix.Close(c.pipe)
		}
	})
	return f
}

// said is what the serving process was told last.
func (f *fake) said() *link.Message { return f.serving.out.queue[len(f.serving.out.queue)-1].message }

func (f *fake) ask(m *link.Message) *link.Reply {
	f.t.Helper()
	if err := f.handle(m, nil); err != nil {
		f.t.Fatal(err)
	}
	if f.said().Seq != m.Seq || f.said().Reply == nil {
		f.t.Fatalf("told %+v", f.said())
	}
	return f.said().Reply
}

func start(seq int64, id string) *link.Message {
	return &link.Message{Seq: seq, Start: &link.Start{ID: id, Path: []byte("/bin/sh"), Argv: [][]byte{[]byte("sh")}}}
}

func TestACommandIsForkedOnceAndKeptUntilItIsForgotten(t *testing.T) {
	f := newFake(t)
	first := f.ask(start(1, "p1"))
	again := f.ask(start(2, "p1"))
	if first.Command.PID != 101 || again.Command.PID != 101 || len(f.forked) != 1 {
		t.Errorf("forked %v, told %+v and %+v", f.forked, first, again)
	}
	f.handle(&link.Message{Forget: "p1"}, nil)
	f.ended(101, 256)
	exit := f.said().Exit
	if exit == nil || exit.ID != "p1" || exit.Status.ExitStatus() != 1 || !exit.At.Equal(time.Unix(1000, 0)) {
		t.Errorf("told %+v", f.said())
	}
	if ended := f.ask(start(3, "p1")); ended.Command.Exit == nil || len(f.forked) != 1 {
		t.Errorf("forked %v, told %+v", f.forked, ended)
	}
	f.handle(&link.Message{Forget: "p1"}, nil)
	if len(f.commands) != 0 || len(f.byPID) != 0 {
		t.Errorf("kept %v", f.commands)
	}
}

func TestOnlyACommandThatHasNotBeenReapedIsSignalled(t *testing.T) {
	f := newFake(t)
	f.ask(start(1, "p1"))
	signal := func(id string) *link.Message {
		return &link.Message{Seq: 2, Signal: &link.Signal{ID: id, Signal: unix.SIGTERM}}
	}
	running := f.ask(signal("p1")).Errno
	f.ended(101, 0)
	ended, unknown := f.ask(signal("p1")).Errno, f.ask(signal("p2")).Errno
	if running != 0 || ended != unix.ESRCH || unknown != unix.ESRCH || !slices.Equal(f.killed, []int{-101}) {
		t.Errorf("%v, %v and %v; signalled %v", running, ended, unknown, f.killed)
	}
}

func TestAForkThatFailsIsToldWithItsReason(t *testing.T) {
	f := newFake(t)
	f.refuse = unix.E2BIG
	if reply := f.ask(start(1, "p1")); reply.Errno != unix.E2BIG || reply.Command != nil || len(f.commands) != 0 {
		t.Errorf("told %+v", reply)
	}
	f.refuse, f.stopping = nil, true
	if reply := f.ask(start(2, "p1")); reply.Errno != unix.ESHUTDOWN {
		t.Errorf("while it stops: %+v", reply)
	}
}

func TestCommandsThatLeaveNoRoomForTheServingProcessAreEnded(t *testing.T) {
	f := newFake(t)
	clock, ended := time.Unix(1000, 0), 0
	f.Now = func() time.Time { return clock }
	f.system.killAll = func() { ended++ }
	forks := fmt.Errorf("forking the serving process: %w", syscall.EAGAIN)
	dies := errors.New("exit code 2")
	const second = time.Second
	var c crowd
	for _, step := range []struct {
		after time.Duration
		err   error
		ended int
	}{
		{0, forks, 0}, {4 * second, forks, 0}, {4 * second, dies, 0}, {second, forks, 0}, {second, dies, 1}, // It is crowded.
		{second, forks, 1}, {4 * second, forks, 1}, {6 * second, dies, 1}, // That was something else.
		{second, forks, 1}, {11 * second, dies, 1}, {second, dies, 1},
	} {
		clock = clock.Add(step.after)
		if c = f.makeRoom(c, step.err); ended != step.ended {
			t.Fatalf("ended %d times after %+v", ended, step)
		}
	}
	if c != (crowd{}) {
		t.Error("it is still crowded")
	}
}

// FuzzHandle has process 1 do what a serving process could ask that has gone mad.
func FuzzHandle(f *testing.F) {
	for _, m := range []*link.Message{
		start(1, "p1"), {Forget: "p1"}, {Seq: 2, Signal: &link.Signal{ID: "p1", Signal: 9}}, {}, {Stopping: true},
		{Start: &link.Start{ID: "p2"}}, {Hello: &link.Hello{}},
	} {
		raw, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, raw)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		init := newFake(t)
		for _, raw := range [][]byte{first, second, first} {
			var m link.Message
			if json.Unmarshal(raw, &m) != nil {
				return
			}
			_ = init.handle(&m, nil) // It may be no request.
			for _, pid := range init.killed {
				if pid > -100 {
					t.Fatalf("signalled %d", pid)
				}
			}
			if len(init.commands) != len(init.byPID) || len(init.commands) > len(init.forked) {
				t.Fatalf("%d commands, %d processes, %d forks", len(init.commands), len(init.byPID), len(init.forked))
			}
		}
		for pid := range init.byPID {
			init.ended(pid, 0)
		}
		for id := range init.commands {
			if err := init.handle(&link.Message{Forget: id}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(init.commands)+len(init.byPID) != 0 {
			t.Fatalf("kept %v", init.commands)
		}
	})
}
