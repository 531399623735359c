// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	noteRestart = "It was ended by a restart of the workspace."
	noteUnknown = "The workspace was restarted while it was being started: it is not known whether it ran."
	noteFailed  = "The agent failed to collect its output, and ended it."
	noteStopped = "The workspace was being stopped."
	noteOrphans = "Its supervisor was killed, and all its processes were ended."
)

// command is one that was started, or that is being started.
type command struct {
	number int
	output *output
	// settled is closed once it is known whether it was started.
	settled chan struct{}

	mu sync.Mutex
	status
	// saved is the record on disk, if it is known.
	saved record
	// failure is why it was not started.
	failure *protocol.Error
	// pipe is what it writes to, while that is collected.
	pipe *os.File
	// changed is closed at the next change of what describe returns; nil if nothing waits for it.
	changed chan struct{}
}

// status is what is known of a command.
type status struct {
	record
	// supervisor is the process below which all of it runs.
	supervisor int
	// processes is what has become of them. The record has the exit when the output up to there is collected.
	processes initproc.State
	// concluded reports whether nothing of it runs and all of it is on disk.
	concluded bool
}

// runs reports whether any of it does.
func (s *status) runs() bool { return s.State == protocol.Running || !s.processes.Done && !s.concluded }

// root is the process below which it runs; 0 if nothing of it does.
func (s *status) root() int {
	if s.processes.Done || s.concluded {
		return 0
	}
	return s.supervisor
}

// hasUnrecordedExit reports whether it has exited and the record does not have that yet.
func (s *status) hasUnrecordedExit() bool { return s.processes.Exited && s.State == protocol.Running }

// withExit is the record with the exit in it.
func (s *status) withExit() record {
	r := s.record
	r.State, r.EndedAt = protocol.Exited, s.processes.At
	if status := s.processes.Status; status.Signaled() {
		r.Signal = unix.SignalName(status.Signal())
	} else {
		r.ExitCode = new(status.ExitStatus())
	}
	if s.processes.Orphaned {
		r.Note = noteOrphans
	}
	return r
}

func newCommand(r record, out *output) *command {
	number, _ := numberOf(r.ID)
	return &command{number: number, output: out, status: status{record: r}, settled: make(chan struct{})}
}

// numberOf is the number in the id of a process, such as 3 in p3.
func numberOf(id string) (int, bool) {
	digits, ok := strings.CutPrefix(id, "p")
	if !ok {
		return 0, false
	}
	number, err := strconv.Atoi(digits)
	return number, err == nil && number > 0 && idOf(number) == id
}

func idOf(number int) string { return "p" + strconv.Itoa(number) }

func (c *command) id() string { return idOf(c.number) }

// describe is what people and models see. The output may be ahead of the state, never behind it.
func (c *command) describe() protocol.Process { return c.withOutput(c.current().Process) }

func (c *command) withOutput(p protocol.Process) protocol.Process {
	written, dropped, unstored := c.output.size()
	p.OutputBytes, p.OutputDropped = written, dropped
	if unstored != "" {
		p.Note = strings.TrimPrefix(p.Note+"; "+unstored, "; ")
	}
	return p
}

// settle notes whether it was started, for all who wait for that.
func (c *command) settle(failure *protocol.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = failure
	close(c.settled)
}

// startFailure is why it was not started.
func (c *command) startFailure() *protocol.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// wasStarted reports whether it is known that it was started.
func (c *command) wasStarted() bool {
	select {
	case <-c.settled:
		return c.startFailure() == nil
	default:
		return false
	}
}

// current is its status as it is.
func (c *command) current() *status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	return &s
}

// set changes its status, and wakes who waits for that.
func (c *command) set(change func(*status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
	c.announce()
}

// setRecord replaces the record.
func (c *command) setRecord(r record) { c.set(func(s *status) { s.record = r }) }

// conclude notes that nothing more comes.
func (c *command) conclude() { c.set(func(s *status) { s.concluded = true }) }

// setProcesses notes what has become of its processes, and ends a wait for output.
func (c *command) setProcesses(state initproc.State) {
	c.set(func(s *status) { s.processes = state })
	c.nudge()
}

// noteOrphans notes how what a command had left behind was ended.
func (c *command) noteOrphans() {
	c.set(func(s *status) {
		if s.processes.Orphaned && !strings.Contains(s.Note, noteOrphans) {
			s.Note = strings.TrimSpace(s.Note + " " + noteOrphans)
		}
	})
}

// change returns a channel that is closed at the next change.
func (c *command) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.changed
}

// announce wakes who waits for a change. The caller holds the lock.
func (c *command) announce() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// setPipe notes which pipe is collected.
func (c *command) setPipe(pipe *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pipe = pipe
}

// nudge ends a wait for output.
func (c *command) nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pipe != nil {
		_ = c.pipe.SetReadDeadline(time.Unix(1, 0)) // It is not waited for if it has no deadlines.
	}
}
