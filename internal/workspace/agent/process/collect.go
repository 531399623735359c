// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/protocol"
)

// retryInterval is the time between two attempts to put on disk what has become of a command.
const retryInterval = 5 * time.Second

// collector follows commands to their ends.
type collector struct {
	table *table
	tasks sync.WaitGroup

	mu sync.Mutex
	// stopped is closed when the container stops, after the end of all commands.
	stopped chan struct{}
}

// stop notes that all commands have ended. The channel is closed when that is on disk.
func (l *collector) stop() <-chan struct{} {
	l.mu.Lock()
	close(l.stopped)
	l.mu.Unlock()
	for _, c := range l.table.all() {
		c.nudge()
	}
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		l.tasks.Wait()
	}()
	return recorded
}

// hasStopped reports whether all commands have ended because the container stops.
func (l *collector) hasStopped() bool {
	select {
	case <-l.stopped:
		return true
	default:
		return false
	}
}

// collect follows a command to its end, in a goroutine: it moves the output to disk, and notes the exit. It ends early
// when the container stops.
func (l *collector) collect(c *command, pipe *os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hasStopped() {
		l.tasks.Go(func() {
			log := l.table.options.Log
			if guard(log, "collecting output", func() { l.follow(c, pipe) }) {
				guard(log, "ending a command", func() { l.abandon(c, pipe) })
			}
		})
	}
}

// abandon ends a command that cannot be followed.
func (l *collector) abandon(c *command, pipe *os.File) {
	_ = pipe.Close() // It was only read, and may be closed.
	deliver(c, l.table.processes, unix.SIGKILL)
	c.conclude()
	if err := l.lose(c, noteFailed); err != nil {
		l.table.options.Log.Warn("the end of a command could not be recorded", "id", c.id(), "error", err)
	}
}

// lose notes that it is not known how a command ended.
func (l *collector) lose(c *command, note string) error {
	r := c.current().record
	r.State, r.Starting, r.EndedAt, r.Note = protocol.Lost, false, l.table.options.Now(), note
	c.setRecord(r)
	return l.save(c, r)
}

func (l *collector) follow(c *command, pipe *os.File) {
	if err := l.table.store.sketch(c.current().record); err != nil {
		// After a restart of the container it will not be known whether it was started.
		l.table.options.Log.Warn("a record could not be written", "id", c.id(), "error", err)
	}
	ended := l.drain(c, pipe)
	c.setPipe(nil)
	_ = pipe.Close() // It was only read.
	c.output.close()
	l.awaitCommand(c, func(s *status) bool { return s.processes.Exited || s.State != protocol.Running })
	l.recordExit(c)
	if ended && l.awaitCommand(c, func(s *status) bool { return s.processes.Done }) {
		l.conclude(c)
	}
}

// maxPipeBytes is more than a pipe holds, unless root has enlarged it.
const maxPipeBytes = 1 << 20

// drain moves output to disk until all writers have closed the pipe or no process of the command is left, which it
// reports, or until the workspace stops. A command that has exited is recorded as soon as all that it can have written
// is there. Then others may continue to write.
func (l *collector) drain(c *command, pipe *os.File) (ended bool) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		l.table.options.Log.Error("the output of a command cannot be read", "id", c.id(), "error", err)
		return true
	}
	for {
		now, stopping := c.current(), l.hasStopped()
		done := now.processes.Done
		hurry := done || stopping || now.hasUnrecordedExit()
		take := takeNext
		if hurry {
			take = takeAll
		}
		over := take(pipe, raw, c.output)
		c.set(func(*status) {}) // There is more output.
		if over || done {
			return true
		}
		if hurry {
			l.recordExit(c)
		}
		if stopping {
			return false
		}
	}
}

// takeNext takes something from the pipe, and waits for it until there is a nudge. It reports whether no process can
// still write.
func takeNext(pipe *os.File, raw syscall.RawConn, to *output) (over bool) {
	var n int64
	var err error
	failure := raw.Read(func(descriptor uintptr) bool {
		n, err = to.take(int(descriptor))
		return !errors.Is(err, unix.EAGAIN)
	})
	if errors.Is(failure, os.ErrDeadlineExceeded) {
		_ = pipe.SetReadDeadline(time.Time{}) // It has deadlines.
		return false
	}
	return failure != nil || n == 0
}

// takeAll takes what the pipe holds, and does not wait. It reports whether no process can still write.
func takeAll(_ *os.File, raw syscall.RawConn, to *output) (over bool) {
	_ = raw.Control(func(descriptor uintptr) { // It is open.
		for left := int64(maxPipeBytes); left > 0 && !over; {
			n, err := to.take(int(descriptor))
			if errors.Is(err, unix.EAGAIN) {
				return
			}
			over = n == 0
			left -= n
		}
	})
	return over
}

// awaitCommand waits until something holds of a command, and reports whether it does: the workspace may stop before.
func (l *collector) awaitCommand(c *command, holds func(*status) bool) bool {
	for {
		changed := c.change()
		if holds(c.current()) {
			return true
		}
		if l.hasStopped() {
			return false
		}
		select {
		case <-changed:
		case <-l.stopped:
		}
	}
}

// recordExit records that a command has exited. It is on disk before anyone sees it, unless the disk is full.
func (l *collector) recordExit(c *command) {
	now := c.current()
	if !now.hasUnrecordedExit() {
		return
	}
	r := now.withExit()
	if l.table.stopping.Load() {
		r.Note = strings.TrimPrefix(r.Note+" "+noteStopped, " ")
	}
	if err := l.save(c, r); err != nil {
		l.table.options.Log.Warn("the end of a command could not be recorded yet", "id", r.ID, "error", err)
	}
	c.setRecord(r)
}

// conclude forgets the processes of a command, once the last of it is on disk.
func (l *collector) conclude(c *command) {
	c.noteOrphans()
	for !c.isSaved() && l.save(c, c.current().record) != nil {
		select {
		case <-time.After(retryInterval):
		case <-l.stopped:
			return
		}
	}
	c.conclude()
	l.table.store.setAside()
	l.table.retain()
}

// save puts a record on disk as people see it now. Only the goroutine that collects the output does.
func (l *collector) save(c *command, r record) error {
	r.Process = c.withOutput(r.Process)
	err := l.table.store.save(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saved = record{}
	if err == nil {
		c.saved = r
	}
	return err
}

// isSaved reports whether the record on disk is as people see it now.
func (c *command) isSaved() bool {
	now := c.current().record
	now.Process = c.withOutput(now.Process)
	c.mu.Lock()
	defer c.mu.Unlock()
	return now == c.saved // The exit code is the same pointer.
}
