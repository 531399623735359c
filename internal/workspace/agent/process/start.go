// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/protocol"
)

// Start starts a command, unless one was started by the same key: then it returns that one, whatever has become of it.
// A refusal means that nothing was started. The context bounds how long it waits for another start by the same key.
func (m *Manager) Start(ctx context.Context, key string, r *protocol.StartRequest) (protocol.Process, error) {
	if !protocol.ValidKey(key) {
		return protocol.Process{}, refuse(protocol.BadRequest, "%.60q cannot be a key.", key)
	}
	if c := m.table.byKey(key); c != nil {
		return joined(ctx, c)
	}
	if key == MainKey {
		return protocol.Process{}, refuse(protocol.BadRequest,
			"The key %s is that of what the workspace's template runs.", key)
	}
	p, err := newPlan(&m.options, r)
	if err != nil {
		return protocol.Process{}, err
	}
	return m.begin(ctx, key, p)
}

// startMain starts what the workspace's template runs, once in each life of the container: with the container's
// environment, in a directory of its own. If it cannot be started, its record says why.
func (m *Manager) startMain() {
	argv, dir := m.options.Main, m.options.MainDir
	if len(argv) == 0 {
		return
	}
	p := &plan{
		Spec:  initproc.Spec{Argv: argv, Dir: dir, Env: environment(m.options.Environment, dir)},
		shown: shown(shellJoin(argv)),
	}
	var err error
	p.Path, err = lookUp(argv[0], dir, p.Env)
	if err == nil {
		_, err = m.begin(context.Background(), MainKey, p) // Only this starts by the key.
	}
	if err != nil {
		m.options.Log.Error("the main process could not be started", "error", errors.Join(err, m.noteFailedMain(p, err)))
	}
}

// noteFailedMain leaves a record of a main process that could not be started, where people look for it.
func (m *Manager) noteFailedMain(p *plan, reason error) error {
	c, fresh, err := m.table.reserve(MainKey, p)
	if !fresh {
		return err
	}
	defer c.settle(nil)
	r := c.current().record
	r.State, r.Starting, r.EndedAt, r.Note = protocol.Exited, false, m.options.Now(), shown(reason.Error())
	r.ExitCode = new(127) // as a shell tells it
	c.conclude()
	c.setRecord(r)
	return m.table.store.create(r)
}

// joined waits until it is known whether a command was started.
func joined(ctx context.Context, c *command) (protocol.Process, error) {
	select {
	case <-c.settled:
	case <-ctx.Done():
		return protocol.Process{}, refuse(protocol.Unavailable,
			"The command is still being started: ask again by the same key.")
	}
	if failure := c.startFailure(); failure != nil {
		return protocol.Process{}, failure
	}
	return c.describe(), nil
}

func (m *Manager) begin(ctx context.Context, key string, p *plan) (protocol.Process, error) {
	c, fresh, err := m.table.reserve(key, p)
	if err != nil {
		return protocol.Process{}, err
	}
	if fresh {
		c.settle(m.launch(c, p))
		ctx = context.WithoutCancel(ctx) // It is known.
	}
	return joined(ctx, c)
}

// launch puts the intent on disk, forks the command, and has its output collected.
func (m *Manager) launch(c *command, p *plan) *protocol.Error {
	r := c.current().record
	if err := m.table.store.create(r); err != nil {
		m.table.withdraw(c)
		if isFull(err) {
			return refuse(protocol.NoSpace, "The workspace's storage is full: there is no room to record a command.")
		}
		return refuse(protocol.Internal, "The command cannot be recorded: %v.", err)
	}
	started, err := m.options.Init.Start(&p.Spec, c.setProcesses)
	if err != nil {
		m.table.withdraw(c)
		return whyNot(p, err)
	}
	r.Starting, r.StartedAt = false, started.StartedAt
	c.setPipe(started.Output)
	c.set(func(s *status) { s.record, s.supervisor = r, started.Supervisor })
	m.collector.collect(c, started.Output)
	return nil
}

// whyNot explains an error of fork and exec to a model.
func whyNot(p *plan, err error) *protocol.Error {
	program, errno := shellJoin(p.Argv[:1]), syscall.EINVAL
	_ = errors.As(err, &errno) // Other errors cannot happen.
	switch errno {
	case unix.E2BIG:
		return refuse(protocol.TooLarge, "The command is longer than the operating system takes, which is 128 KiB a word, "+
			"and less than 2 MiB with the environment: write it to a file and run that.")
	case unix.ENOEXEC:
		return refuse(protocol.CannotStart, "%s is no program: it has neither a format that runs here nor a first line #!.",
			program)
	case unix.ENOENT:
		return refuse(protocol.CannotStart, "%s cannot be run in %s: it does not exist, or what its first line #! names or "+
			"its loader does not.", program, p.Dir)
	case unix.ESHUTDOWN:
		return refuse(protocol.CannotStart, "The workspace is being stopped.")
	case unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE:
		return refuse(protocol.CannotStart,
			"%s cannot be started: out of processes, memory or file descriptors (%v). Stop other commands first.",
			program, errno)
	default:
		return refuse(protocol.CannotStart, "%s cannot be run in %s: %v.", program, p.Dir, errno)
	}
}
