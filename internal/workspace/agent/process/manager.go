// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/protocol"
)

// MainKey is the key of what the workspace's template runs.
const MainKey = "main"

// Options configure a Manager.
type Options struct {
	// Directory of the workspace's files, absolute. Commands run there by default.
	Directory string
	// StateDir keeps records and outputs. Only the agent writes there.
	StateDir string
	// Environment of the container, NAME=VALUE.
	Environment []string
	// Main is what the workspace's template runs, in the directory MainDir; empty: nothing.
	Main    []string
	MainDir string
	// Init starts commands.
	Init *initproc.Init
	// Grace is how long commands have between SIGTERM and SIGKILL when the container stops.
	Grace time.Duration
	// Now returns the current time.
	Now func() time.Time
	Log *slog.Logger
	// Limits that are zero are the defaults.
	Limits Limits
}

// Limits bound what commands may take.
type Limits struct {
	// Running is how many commands may run at once, those included that have exited and left processes behind; default:
	// 100.
	Running int
	// Finished is how many that have ended are remembered, default: 1000, and FinishedBytes how much of their output,
	// default: 1 GiB. Of the oldest the output goes first.
	Finished      int
	FinishedBytes int64
	// FinishedSessions is how many of these may be sessions; default: 100.
	FinishedSessions int
	// Unread is how long the command of a session may take to read its input; default: a minute.
	Unread time.Duration
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Running:       cmp.Or(l.Running, 100),
		Finished:      cmp.Or(l.Finished, 1000),
		FinishedBytes: cmp.Or(l.FinishedBytes, 1<<30),

		FinishedSessions: cmp.Or(l.FinishedSessions, 100),
		Unread:           cmp.Or(l.Unread, time.Minute),
	}
}

// Manager runs commands. It is safe for concurrent use.
type Manager struct {
	options   Options
	table     *table
	collector *collector
	// recorded is closed once all is on disk that happened until the container stopped.
	recorded chan struct{}
}

// Open remembers the commands of earlier lives of the container. It waits for the state directory, which another pod
// may still use, until ctx is done.
func Open(ctx context.Context, options Options) (*Manager, error) {
	options.Limits = options.Limits.orDefaults()
	t := &table{
		options: options, store: store{dir: options.StateDir},
		commands: map[int]*command{}, keys: map[string]*command{},
	}
	if err := t.store.open(ctx); err != nil {
		return nil, err
	}
	m := &Manager{
		options: options, table: t, recorded: make(chan struct{}),
		collector: &collector{table: t, stopped: make(chan struct{})},
	}
	if err := m.recover(); err != nil {
		return nil, err
	}
	t.retain()
	return m, nil
}

// recover remembers the commands of earlier lives of the container. Those that ran then are lost.
func (m *Manager) recover() error {
	ids, err := m.table.store.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		number, _ := numberOf(id)
		m.table.last = max(m.table.last, number)
		r, err := m.table.store.load(id)
		if err == nil {
			err = m.remember(r)
		} else {
			err = m.table.store.remove(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remember adds a command of an earlier life.
func (m *Manager) remember(r record) error {
	out, err := openOutput(m.table.store.place(r.ID), m.options.Now, r.OutputBytes)
	if err != nil {
		return err
	}
	c := newCommand(r, out)
	c.settle(nil)
	c.conclude()
	m.table.add(c, r.Key)
	if r.State != protocol.Running {
		return nil
	}
	note := noteRestart
	if r.Starting {
		note = noteUnknown
	}
	return m.collector.lose(c, note)
}

// recordPatience is how long what has become of the commands may take to be on disk when the container stops. With the
// grace it stays below the 30 s of a pod.
const recordPatience = 4 * time.Second

// Run starts the main process. When ctx is done it ends all commands, and waits until what became of them is on disk.
func (m *Manager) Run(ctx context.Context) {
	m.collector.tasks.Go(func() {
		guard(m.options.Log, "starting the main process", m.startMain)
	})
	<-ctx.Done()
	m.table.stopping.Store(true)
	m.options.Init.EndAll(m.options.Grace)
	if !closedWithin(m.collector.stop(), recordPatience) {
		m.options.Log.Warn("Not all ends of commands could be recorded in time")
	}
	close(m.recorded)
}

// guard runs a part of a goroutine, and reports whether it panicked: that must not end the agent with all commands.
func guard(log *slog.Logger, what string, run func()) (panicked bool) {
	defer func() {
		if recover() != nil {
			panicked = true
			log.Error("A goroutine panicked", "doing", what, "stack", string(debug.Stack()))
		}
	}()
	run()
	return false
}

// List returns all commands that are remembered, the newest first.
func (m *Manager) List() []protocol.Process {
	list, look := []protocol.Process{}, sync.OnceValue(m.table.processes)
	for _, c := range m.table.all() {
		if c.wasStarted() {
			list = append(list, withDescendants(c, look))
		}
	}
	return list
}

// Get returns a command as it is.
func (m *Manager) Get(id string) (protocol.Process, error) {
	c, err := m.table.find(id)
	if err != nil {
		return protocol.Process{}, err
	}
	return withDescendants(c, m.table.processes), nil
}

// Wait returns a command when it has ended, or as it is when the context is done.
func (m *Manager) Wait(ctx context.Context, id string) (protocol.Process, error) {
	return m.await(ctx, id, func(p protocol.Process) bool { return p.State != protocol.Running })
}

// WaitOutput returns a command when it has written more than from bytes or has ended, or as it is when the context is
// done.
func (m *Manager) WaitOutput(ctx context.Context, id string, from int64) (protocol.Process, error) {
	return m.await(ctx, id, func(p protocol.Process) bool { return p.OutputBytes > from || p.State != protocol.Running })
}

func (m *Manager) await(ctx context.Context, id string, enough func(protocol.Process) bool) (protocol.Process, error) {
	c, err := m.table.find(id)
	if err != nil {
		return protocol.Process{}, err
	}
	for {
		changed := c.change()
		if enough(c.describe()) {
			return withDescendants(c, m.table.processes), nil
		}
		select {
		case <-changed:
		case <-m.recorded: // Until then an end that is known may not be reported yet.
			return c.describe(), nil
		case <-ctx.Done():
			return c.describe(), nil
		}
	}
}

// Output returns what is kept of a command's output from an offset on.
func (m *Manager) Output(id string, from int64) (*Output, error) {
	c, err := m.table.find(id)
	if err != nil {
		return nil, err
	}
	if from < 0 {
		return nil, refuse(protocol.BadRequest, "The offset %d is negative.", from)
	}
	return c.output.read(from), nil
}

// Info returns the shell that runs commands, empty if there is none, and how many commands run.
func (m *Manager) Info() (shell string, running int) {
	if executable(shellPath) == nil {
		shell = shellPath
	}
	return shell, countRunning(slices.Values(m.table.all()))
}

func refuse(code protocol.ErrorCode, format string, args ...any) *protocol.Error {
	return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
