// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/supervisor"
)

// startPatience is how long a command may take to be started before its supervisor is killed, where the next serving
// process waits for that.
const startPatience = 10 * time.Second

// command is one that has a supervisor, and that the serving process has not yet let go.
type command struct {
	id string
	// supervisor is the process below which all of it runs.
	supervisor int
	// started is whether the supervisor has said that it was; startedAt is about when.
	started   bool
	startedAt time.Time
	// pipe is the read end of what the command writes to.
	pipe int
	// spoken is whether its standard input and output are a socket of the serving process.
	spoken bool
	// asked are the requests to start it that have not been answered.
	asked []int64
	exit  *link.Exit
	done  *link.Done
}

// isStarted reports whether it is known that the command was started. Of one whose supervisor was killed it is not, and
// then it counts as started, so that it is not started again.
func (c *command) isStarted() bool { return c.started || c.done != nil }

func (c *command) describe() *link.Command {
	return &link.Command{
		ID: c.id, Supervisor: c.supervisor, StartedAt: c.startedAt, Spoken: c.spoken, Exit: c.exit, Done: c.done,
	}
}

// handle does what the serving process asks, and closes the file that came with it. An error is a message that it never
// sends.
func (i *Init) handle(m *link.Message, file *os.File) error {
	if file != nil {
		defer func() { _ = file.Close() }() // It is the command's now, or nobody's.
		if m.Start == nil {
			return errors.New("a request with a descriptor that it has no use for")
		}
	}
	i.table.mu.Lock()
	defer i.table.mu.Unlock()
	switch {
	case m.Start != nil:
		i.start(m.Seq, m.Start, file)
	case m.Forget != "":
		i.table.forget(m.Forget)
	default:
		return errors.New("a message that is no request")
	}
	return nil
}

// start has the command of that id started if there is none, and answers with it once it is. Its standard input and
// output are the socket, if there is one.
func (i *Init) start(seq int64, s *link.Start, socket *os.File) {
	c, err := i.table.commands[s.ID], error(nil)
	if c == nil {
		c, err = i.launch(s, socket)
	}
	if err != nil {
		errno := syscall.EINVAL
		_ = errors.As(err, &errno) // What the operating system did not say is a request without sense.
		i.table.tell(&link.Message{Seq: seq, Reply: &link.Reply{Errno: errno}}, -1)
		return
	}
	c.asked = append(c.asked, seq)
	if c.isStarted() {
		i.table.answer(c)
	}
}

// launch forks the supervisor of a command. Standard error of the command, and output where there is no socket, are one
// pipe, whose other end is kept.
func (i *Init) launch(s *link.Start, socket *os.File) (*command, error) {
	plan, err := supervisor.Encode(s.Path, s.Dir, s.Env, s.Argv)
	if err != nil || s.ID == "" {
		return nil, syscall.EINVAL
	}
	if i.table.stopping {
		return nil, syscall.ESHUTDOWN
	}
	planned, err := inMemory(plan)
	if err != nil {
		return nil, err
	}
	defer func() { _ = planned.Close() }() // It is the supervisor's now.
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer func() { _ = unix.Close(pipe[1]) }() // It is the command's now.
	// It is the reader's side alone that does not wait: each end has a mode of its own.
	if err := unix.SetNonblock(pipe[0], true); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing a pipe: %w", err), unix.Close(pipe[0]))
	}
	input, output := i.null.Fd(), uintptr(pipe[1])
	if socket != nil {
		input, output = socket.Fd(), socket.Fd()
	}
	pid, err := i.system.fork(i.Path, []string{supervisor.Name},
		supervisor.Attributes(input, output, uintptr(pipe[1]), uintptr(i.reports.write), planned.Fd()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forking a supervisor: %w", err), unix.Close(pipe[0]))
	}
	c := &command{id: s.ID, supervisor: pid, startedAt: i.Now(), pipe: pipe[0], spoken: socket != nil}
	i.table.commands[c.id], i.table.supervised[pid] = c, c
	return c, nil
}

// inMemory is a file without a name.
func inMemory(content []byte) (*os.File, error) {
	descriptor, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(descriptor), "plan")
	if _, err := f.Write(content); err != nil {
		return nil, errors.Join(fmt.Errorf("writing a file in memory: %w", err), f.Close())
	}
	return f, nil
}

// awaitStarts waits until it is known of each command whether it was started: only then can a serving process be told
// how things stand.
func (i *Init) awaitStarts() {
	late, tick := time.NewTimer(startPatience), time.NewTicker(look)
	defer late.Stop()
	defer tick.Stop()
	for i.table.endStarts(false) > 0 {
		select {
		case <-tick.C:
		case <-late.C:
			i.table.endStarts(true)
		}
	}
}
