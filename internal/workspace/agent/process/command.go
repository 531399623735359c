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

	"parley.dev/parley/internal/workspace/agent/link"
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
	// saved is what is on disk, as far as this process has put it there.
	saved record
	// failure is why it was not started.
	failure *protocol.Error
	// supervisor is the process below which all of it runs.
	supervisor int
	// exit is what process 1 has told, which is not in the record until the output up to there is collected.
	exit *link.Exit
	// done is not nil once process 1 has told that nothing of it is left.
	done *link.Done
	// pipe is what it writes to, while that is collected.
	pipe *os.File
	// concluded reports whether all of it is on disk and process 1 keeps nothing of it.
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
	return c.record.State == protocol.Running || c.done == nil && !c.concluded
}

// isDone reports whether process 1 has told that nothing of it is left.
func (c *command) isDone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done != nil
}

// root is the process below which it runs; 0 if nothing of it does.
func (c *command) root() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil || c.concluded {
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

// exited takes the exit from process 1, and whether nothing else is left. It has who collects the output look.
func (c *command) exited(exit *link.Exit, done *link.Done) {
	c.mu.Lock()
	c.exit, c.done = exit, done
	c.mu.Unlock()
	c.announce()
	c.nudge()
}

// supervisedBy takes what process 1 knows. It may have told of an end since.
func (c *command) supervisedBy(known *link.Command) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.supervisor = known.Supervisor
	if c.exit == nil {
		c.exit = known.Exit
	}
	if c.done == nil {
		c.done = known.Done
	}
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
	return c.exit != nil && c.record.State == protocol.Running
}

// ended is the record with the exit in it.
func (c *command) ended() record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.record
	r.State, r.EndedAt = protocol.Exited, c.exit.At
	if status := c.exit.Status; status.Signaled() {
		r.Signal = unix.SignalName(status.Signal())
	} else {
		r.ExitCode = new(status.ExitStatus())
	}
	if c.done != nil && c.done.Orphaned {
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
