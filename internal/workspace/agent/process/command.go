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

// command is one that was started, or that is being started.
type command struct {
	number int
	output *output
	// settled is closed once it is known whether it was started.
	settled chan struct{}

	mu     sync.Mutex
	record record
	// saved is what is on disk, if it is known.
	saved record
	// failure is why it was not started.
	failure *protocol.Error
	// supervisor is the process below which all of it runs.
	supervisor int
	// state is what has become of its processes. The record has its exit when the output up to there is collected.
	state initproc.State
	// pipe is what it writes to, while that is collected.
	pipe *os.File
	// concluded reports whether nothing of it runs and all of it is on disk.
	concluded bool
	// changed is closed at the next change of what describe tells; nil if nobody waits for it.
	changed chan struct{}
}

func newCommand(r record, out *output) *command {
	number, _ := numberOf(r.ID)
	return &command{number: number, output: out, record: r, settled: make(chan struct{})}
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

func (c *command) isStarting() bool {
	select {
	case <-c.settled:
		return c.startFailure() != nil
	default:
		return true
	}
}

func (c *command) startFailure() *protocol.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// runs reports whether any of it does.
func (c *command) runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record.State == protocol.Running || !c.state.Done && !c.concluded
}

// isDone reports whether no process of it is left.
func (c *command) isDone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Done
}

// root is the process below which it runs; 0 if nothing of it does.
func (c *command) root() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Done || c.concluded {
		return 0
	}
	return c.supervisor
}

func (c *command) isConcluded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.concluded
}

// conclude notes that nothing more comes.
func (c *command) conclude() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.concluded = true
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

// announce wakes who waits for a change.
func (c *command) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// update notes what has become of its processes, and wakes who waits for that or for its output.
func (c *command) update(s initproc.State) {
	c.mu.Lock()
	c.state = s
	c.mu.Unlock()
	c.announce()
	c.nudge()
}

// run notes that it was started.
func (c *command) run(r record, started *initproc.Command) {
	c.mu.Lock()
	c.record, c.supervisor, c.pipe = r, started.Supervisor, started.Output
	c.mu.Unlock()
	c.announce()
}

// nudge ends a wait for output.
func (c *command) nudge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pipe != nil {
		_ = c.pipe.SetReadDeadline(time.Unix(1, 0)) // It is not waited for if it has no deadlines.
	}
}

// due reports whether it has exited and the record does not say so yet.
func (c *command) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Exited && c.record.State == protocol.Running
}

// ended is the record with the exit in it.
func (c *command) ended() record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record
	r.State, r.EndedAt = protocol.Exited, c.state.At
	if status := c.state.Status; status.Signaled() {
		r.Signal = unix.SignalName(status.Signal())
	} else {
		r.ExitCode = new(status.ExitStatus())
	}
	if c.state.Orphaned {
		r.Note = noteOrphans
	}
	return r
}

// become replaces the record.
func (c *command) become(r record) {
	c.mu.Lock()
	c.record = r
	c.mu.Unlock()
	c.announce()
}

// current is the record as it is.
func (c *command) current() record {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record
}
