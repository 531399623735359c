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

	"parley.dev/parley/internal/workspace/agent/supervisor"
)

// Spec is what a command will be.
type Spec struct {
	Path      string
	Argv, Env []string
	// Dir is absolute. A relative Path is one within it.
	Dir string
	// Socket is its standard input and output. If it is nil, the input is empty, and the output goes to the pipe.
	Socket *os.File
}

// State is what has become of a command.
type State struct {
	// Exited is whether its own process has ended, with Status, at At.
	Exited bool
	Status syscall.WaitStatus
	At     time.Time
	// Done is whether no process of it is left. Orphaned is whether its supervisor was killed, and the rest with it.
	Done, Orphaned bool
}

// Command is one that has a supervisor.
type Command struct {
	// Supervisor is the process below which all of it runs.
	Supervisor int
	StartedAt  time.Time
	// Output is the read end of the pipe of its standard error, and of its output if there is no socket. The caller
	// closes it.
	Output *os.File

	// notify is called at each change, with the lock of Init.
	notify func(State)
	state  State
	// settled is whether it is known if it was started; started then has the error.
	settled bool
	started chan error
}

// Start starts a command. notify is called with each of its states, perhaps before Start returns, and must not wait. An
// error is a syscall.Errno, or wraps one, if the operating system refused it; then nothing was started.
func (i *Init) Start(spec *Spec, notify func(State)) (*Command, error) {
	c, err := i.launch(spec, notify)
	if err != nil {
		return nil, err
	}
	if err := <-c.started; err != nil {
		return nil, errors.Join(err, c.Output.Close())
	}
	return c, nil
}

// launch forks the supervisor of a command.
func (i *Init) launch(spec *Spec, notify func(State)) (c *Command, err error) {
	encoded, err := supervisor.Encode(spec.Path, spec.Dir, spec.Env, spec.Argv)
	if err != nil {
		return nil, err
	}
	plan, err := inMemory(encoded)
	if err != nil {
		return nil, err
	}
	defer func() { _ = plan.Close() }() // The supervisor has it.
	read, write, err := pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = write.Close() }() // The command has it.
	input, output := i.null, write
	if spec.Socket != nil {
		input, output = spec.Socket, spec.Socket
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	pid, err := 0, error(syscall.ESHUTDOWN)
	if !i.stopping {
		pid, err = i.system.fork("/proc/self/exe", []string{supervisor.Name},
			supervisor.Attributes(input.Fd(), output.Fd(), write.Fd(), i.reporter.Fd(), plan.Fd()))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forking a supervisor: %w", err), read.Close())
	}
	c = &Command{Supervisor: pid, StartedAt: i.now(), Output: read, notify: notify, started: make(chan error, 1)}
	i.supervised[pid] = c
	i.starts.Add(1)
	return c, nil
}

// inMemory is a file without a name.
func inMemory(content []byte) (*os.File, error) {
	descriptor, err := unix.MemfdCreate("plan", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(descriptor), "plan")
	if _, err := f.Write(content); err != nil {
		return nil, errors.Join(fmt.Errorf("writing a file in memory: %w", err), f.Close())
	}
	return f, nil
}

// reported notes what a supervisor reports.
func (i *Init) reported(r supervisor.Report) {
	c := i.supervised[r.Supervisor]
	switch {
	case c == nil || c.state.Done:
	case r.Kind == supervisor.Started:
		i.settle(c, nil)
	case r.Kind == supervisor.Failed && !c.settled:
		i.refuse(c, syscall.Errno(r.Value))
	case (r.Kind == supervisor.Exited || r.Kind == supervisor.Over) && c.settled && !c.state.Exited:
		i.change(c, State{
			Exited: true, Status: syscall.WaitStatus(r.Value), At: i.now(), Done: r.Kind == supervisor.Over,
		})
	}
}

// settle ends Start, unless it has ended.
func (i *Init) settle(c *Command, err error) {
	if !c.settled {
		c.settled = true
		c.started <- err
		i.starts.Done()
	}
}

// refuse notes that a command could not be started.
func (i *Init) refuse(c *Command, errno syscall.Errno) {
	c.state.Done = true
	i.settle(c, errno)
}

// change tells the caller what has become of a command. If its supervisor was killed, it may not be known whether it
// was started, and then it counts as started.
func (i *Init) change(c *Command, to State) {
	c.state = to
	c.notify(to)
	i.settle(c, nil)
}
