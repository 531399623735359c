// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/agent/supervisor"
)

// table has the children of process 1: the supervisors of commands, and the serving process, which it tells of these.
type table struct {
	now  func() time.Time
	log  *slog.Logger
	kill func(pid int, signal syscall.Signal) error

	// mu is held while children are forked, signalled and reaped.
	mu       sync.Mutex
	commands map[string]*command
	// supervised are commands by the process ids of supervisors that have not been reaped.
	supervised map[int]*command
	// orphaned are commands whose supervisor was killed, and of which processes may still run.
	orphaned []*command
	serving  *serving
	stopping bool
}

// tell queues a message for the serving process. The caller holds the lock. If none runs, the next one is told how
// things stand.
func (t *table) tell(m *link.Message, descriptor int) {
	if t.serving != nil {
		t.serving.out.put(m, descriptor)
	}
}

// answer tells who has asked for a command that it was started.
func (t *table) answer(c *command) {
	for _, seq := range c.asked {
		t.tell(&link.Message{Seq: seq, Reply: &link.Reply{Command: c.describe()}}, c.pipe)
	}
	c.asked = nil
}

// reported takes up what a supervisor says.
func (t *table) reported(r supervisor.Report) {
	c := t.supervised[r.Supervisor]
	switch {
	case c == nil || c.done != nil:
	case r.Kind == supervisor.Started && !c.started:
		c.started = true
		t.answer(c)
	case r.Kind == supervisor.Failed && !c.started:
		t.refuse(c, syscall.Errno(r.Value))
	case c.started && c.exit == nil:
		t.reportedEnd(c, r)
	}
}

func (t *table) reportedEnd(c *command, r supervisor.Report) {
	exit := link.Exit{ID: c.id, Status: syscall.WaitStatus(r.Value), At: t.now()}
	switch r.Kind {
	case supervisor.Exited:
		c.exit = &exit
		t.tell(&link.Message{Exit: c.exit}, -1)
	case supervisor.Over:
		t.finish(c, exit, false)
	}
}

// refuse tells who has asked for a command that it could not be started, and lets it go.
func (t *table) refuse(c *command, errno syscall.Errno) {
	for _, seq := range c.asked {
		t.tell(&link.Message{Seq: seq, Reply: &link.Reply{Errno: errno}}, -1)
	}
	c.asked, c.done = nil, &link.Done{}
	t.drop(c)
}

// finish tells that nothing is left of a command.
func (t *table) finish(c *command, exit link.Exit, orphaned bool) {
	c.exit, c.done = &exit, &link.Done{Exit: exit, Orphaned: orphaned}
	t.answer(c)
	t.tell(&link.Message{Done: c.done}, -1)
}

// forget lets a command go that is done.
func (t *table) forget(id string) {
	if c := t.commands[id]; c != nil && c.done != nil {
		t.drop(c)
	}
}

func (t *table) drop(c *command) {
	delete(t.commands, c.id)
	// An error would mean that it is closed already.
	_ = unix.Close(c.pipe)
}

// endStarts counts the commands of which it is not known whether they were started, and kills their supervisors if it
// is told to.
func (t *table) endStarts(kill bool) (starting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.supervised {
		if c.isStarted() {
			continue
		}
		starting++
		if kill {
			_ = t.kill(c.supervisor, syscall.SIGKILL) // It has not been reaped.
		}
	}
	return starting
}

// below is what runs below process 1, but for the serving process and supervisors.
func (t *table) below() (running, all []proctree.Process) {
	return t.find(func(bool) bool { return true })
}

// strays are what process 1 has adopted, with all that is below them: what is below no supervisor.
func (t *table) strays() (strays, all []proctree.Process) {
	return t.find(func(supervised bool) bool { return !supervised })
}

// find are processes below process 1, by whether they are below a supervisor.
func (t *table) find(meant func(supervised bool) bool) (found, all []proctree.Process) {
	all, err := proctree.All()
	if err != nil {
		t.log.Warn("the processes cannot be seen", "error", err)
		return nil, nil
	}
	t.mu.Lock() // What was forked before that look is known by now.
	defer t.mu.Unlock()
	supervised := map[int]bool{}
	for _, p := range proctree.Below(all, os.Getpid()) {
		own := t.supervised[p.PID] != nil
		if supervised[p.PID] = own || supervised[p.Parent]; own || t.serving != nil && p.PID == t.serving.pid || p.Ended {
			continue
		}
		if meant(supervised[p.PID]) {
			found = append(found, p)
		}
	}
	return found, all
}

// killServing reaches it only while it has not been reaped.
func (t *table) killServing() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.serving; s != nil && !over(s.ended) {
		_ = t.kill(s.pid, syscall.SIGKILL) // If that fails, it is ending.
	}
}

// goneWithin waits until nothing is left below process 1 but the serving process.
func (t *table) goneWithin(patience time.Duration, meanwhile func()) bool {
	end, tick := time.NewTimer(patience), time.NewTicker(look)
	defer end.Stop()
	defer tick.Stop()
	for {
		meanwhile()
		t.mu.Lock()
		supervised := len(t.supervised)
		t.mu.Unlock()
		if running, _ := t.below(); len(running)+supervised == 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-end.C:
			return false
		}
	}
}
