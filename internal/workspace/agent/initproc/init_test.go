// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/supervisor"
)

// fake is process 1 of a system that forks in words alone.
type fake struct {
	*Init
	*table
	t      testing.TB
	forked int
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
	f := &fake{t: t, Init: &Init{Path: "/agent", Now: now, Log: slog.New(slog.DiscardHandler), null: null}}
	f.system = system{
		fork: func(path string, _ []string, attr *syscall.ProcAttr) (int, error) {
			if path != "/agent" || !attr.Sys.Setsid || len(attr.Files) != 5 {
				t.Errorf("forked %s with %+v", path, attr)
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
	f.reset()
	f.table = f.Init.table
	if f.reports, err = openReports(); err != nil {
		t.Fatal(err)
	}
	f.serving = &serving{pid: 2, ended: make(chan struct{}), out: outbox{wake: make(bell, 1)}}
	t.Cleanup(func() {
		null.Close()
		f.reports.close()
		for _, c := range f.commands {
			unix.Close(c.pipe)
		}
	})
	return f
}

// last is the newest message for the serving process.
func (f *fake) last() *link.Message { return f.serving.out.queue[len(f.serving.out.queue)-1].message }

func (f *fake) ask(m *link.Message) {
	f.t.Helper()
	if err := f.handle(m, nil); err != nil {
		f.t.Fatal(err)
	}
}

// reply is the answer to a request, which must be the last message.
func (f *fake) reply(seq int64) *link.Reply {
	f.t.Helper()
	if f.last().Seq != seq || f.last().Reply == nil {
		f.t.Fatalf("the last message is %+v", f.last())
	}
	return f.last().Reply
}

func (f *fake) report(pid int, kind supervisor.Kind, value int) {
	f.reported(supervisor.Report{Supervisor: pid, Kind: kind, Value: value})
}

func start(seq int64, id string) *link.Message {
	return &link.Message{Seq: seq, Start: &link.Start{ID: id, Path: []byte("/bin/sh"), Argv: [][]byte{[]byte("sh")}}}
}

func TestCommandIsForkedOnceAndKeptUntilForgotten(t *testing.T) {
	f := newFake(t)
	f.ask(start(1, "p1"))
	f.ask(start(2, "p1"))
	if len(f.serving.out.queue) != 0 {
		t.Fatalf("an answer came before the start: %+v", f.last())
	}
	f.report(101, supervisor.Started, 102)
	if again := f.reply(2); again.Command.Supervisor != 101 || len(f.serving.out.queue) != 2 || f.forked != 1 {
		t.Errorf("forked %d times, and answered %+v", f.forked, again)
	}
	f.ask(&link.Message{Forget: "p1"})
	f.report(101, supervisor.Exited, 256)
	exit := f.last().Exit
	if exit == nil || exit.ID != "p1" || exit.Status.ExitStatus() != 1 || !exit.At.Equal(time.Unix(1000, 0)) {
		t.Errorf("got %+v", f.last())
	}
	f.ended(101, 0)
	if done := f.last().Done; done == nil || done.Exit != *exit || done.Orphaned {
		t.Errorf("got %+v", f.last())
	}
	f.ask(start(3, "p1"))
	if ended := f.reply(3); ended.Command.Done == nil || f.forked != 1 {
		t.Errorf("forked %d times, and answered %+v", f.forked, ended)
	}
	f.ask(&link.Message{Forget: "p1"})
	if len(f.commands)+len(f.supervised) != 0 {
		t.Errorf("kept %v", f.commands)
	}
}

func TestACommandThatLeavesNothingIsDone(t *testing.T) {
	f := newFake(t)
	f.ask(start(1, "p1"))
	f.report(101, supervisor.Started, 102)
	f.report(101, supervisor.Over, 0)
	if done := f.last().Done; done == nil || done.ID != "p1" {
		t.Errorf("got %+v", f.last())
	}
	told := len(f.serving.out.queue)
	f.ended(101, 0)
	if len(f.serving.out.queue) != told || len(f.supervised) != 0 {
		t.Errorf("then %+v", f.last())
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	f := newFake(t)
	f.refuse = unix.E2BIG
	f.ask(start(1, "p1"))
	if reply := f.reply(1); reply.Errno != unix.E2BIG || reply.Command != nil || len(f.commands) != 0 {
		t.Errorf("a fork: %+v", reply)
	}
	f.refuse = nil
	f.ask(start(2, "p1"))
	f.report(101, supervisor.Failed, int(unix.ENOENT))
	if reply := f.reply(2); reply.Errno != unix.ENOENT || len(f.commands) != 0 {
		t.Errorf("an exec: %+v", reply)
	}
	f.ended(101, 0)
	f.ask(start(3, "p1"))
	f.ended(102, 2<<8)
	if reply := f.reply(3); reply.Errno != unix.EAGAIN || len(f.commands)+len(f.supervised) != 0 {
		t.Errorf("a supervisor without room: %+v", reply)
	}
	f.stopping = true
	f.ask(start(4, "p1"))
	if reply := f.reply(4); reply.Errno != unix.ESHUTDOWN {
		t.Errorf("while it stops: %+v", reply)
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
			f.ask(start(1, "p1"))
			for _, kind := range c.reports {
				f.report(101, kind, 0)
			}
			f.ended(101, 9)
			f.endAdopted()
			if done := f.last().Done; done == nil || !done.Orphaned || done.Status != c.status {
				t.Errorf("got %+v", f.last())
			}
			replies := 0
			for _, l := range f.serving.out.queue {
				if l.message.Reply != nil {
					replies++
				}
			}
			if replies != 1 {
				t.Errorf("answered %d times", replies)
			}
		})
	}
}

func TestAServingProcessHearsOfNoHalfStart(t *testing.T) {
	f := newFake(t)
	f.ask(start(1, "p1"))
	known := make(chan struct{})
	go func() {
		defer close(known)
		f.awaitStarts()
	}()
	if f.endStarts(false) != 1 || over(known) {
		t.Error("it does not wait for the start")
	}
	f.mu.Lock()
	f.report(101, supervisor.Started, 102)
	f.mu.Unlock()
	<-known
	if f.endStarts(true) != 0 || len(f.killed) != 0 {
		t.Errorf("it killed %v", f.killed)
	}
}

func TestCommandsThatStarveTheServingProcessAreKilled(t *testing.T) {
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
		start(1, "p1"), {Forget: "p1"}, {}, {Stopping: true},
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
			if len(init.killed) > 0 {
				t.Fatalf("signalled %v", init.killed)
			}
			if len(init.commands) != len(init.supervised) || len(init.commands) > init.forked {
				t.Fatalf("%d commands, %d supervisors, %d forks", len(init.commands), len(init.supervised), init.forked)
			}
		}
		for pid := range init.supervised {
			init.report(pid, supervisor.Started, 1)
			init.report(pid, supervisor.Over, 0)
			init.ended(pid, 0)
		}
		for id := range init.commands {
			if err := init.handle(&link.Message{Forget: id}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if len(init.commands)+len(init.supervised) != 0 {
			t.Fatalf("kept %v", init.commands)
		}
	})
}
