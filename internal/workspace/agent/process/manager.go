// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/protocol"
)

// MainKey is the key of what the workspace's template runs.
const MainKey = "main"

// Options are what a Manager works with.
type Options struct {
	// Directory of the workspace's files, absolute. Commands run there by default.
	Directory string
	// StateDir keeps records and outputs. Nobody else writes there.
	StateDir string
	// Environment of the container, NAME=VALUE.
	Environment []string
	// Main is what the workspace's template runs, in the directory MainDir; empty: nothing.
	Main    []string
	MainDir string
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
	// FinishedSessions is how many of these were spoken to at most; default: 100.
	FinishedSessions int
	// Unread is how long the command of a session may take to read what it is told; default: a minute.
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
	init      *process1
	collector *collector
	// recorded is closed once all that process 1 has said is on disk.
	recorded chan struct{}
	// unheard are commands that a former serving process spoke to.
	unheard []*command
}

// Open takes up what process 1 and the state directory say of earlier commands. From then on their output is collected;
// Run must follow.
func Open(conn *link.Conn, options Options) (*Manager, error) {
	options.Limits = options.Limits.orDefaults()
	hello, kept, err := greet(conn)
	if err != nil {
		return nil, err
	}
	t := &table{
		options: options, store: store{dir: options.StateDir}, hello: hello,
		commands: map[int]*command{}, keys: map[string]*command{},
	}
	if err := t.store.open(); err != nil {
		return nil, err
	}
	process1 := newProcess1(conn)
	m := &Manager{
		options: options, table: t, init: process1, recorded: make(chan struct{}),
		collector: &collector{table: t, init: process1, stopped: make(chan struct{})},
	}
	if err := m.recover(kept); err != nil {
		return nil, err
	}
	t.retain()
	return m, nil
}

// handedOver is a command that process 1 has kept.
type handedOver struct {
	*link.Command
	pipe *os.File
}

// greet receives how things stand.
func greet(conn *link.Conn) (hello link.Hello, kept map[string]handedOver, err error) {
	first, _, err := conn.Receive()
	if err == nil && first.Hello == nil {
		err = errors.New("it does not begin with a greeting")
	}
	if err != nil {
		return hello, nil, fmt.Errorf("listening to process 1: %w", err)
	}
	hello = *first.Hello
	kept = map[string]handedOver{}
	for range hello.Commands {
		next, pipe, err := conn.Receive()
		if err == nil && (next.Command == nil || pipe == nil) {
			err = errors.New("a command without its pipe")
		}
		if err != nil {
			return hello, nil, fmt.Errorf("listening to process 1: %w", err)
		}
		kept[next.Command.ID] = handedOver{Command: next.Command, pipe: pipe}
	}
	return hello, kept, nil
}

// Run starts the main process and listens to process 1 until that closes the socket, which means that the workspace
// stops. Then it waits until what has ended by then is on disk. The error is nil if process 1 has closed it properly.
func (m *Manager) Run() error {
	m.collector.tasks.Go(m.startMain)
	for _, c := range m.unheard { // Nobody can speak to them any more.
		m.collector.tasks.Go(func() { deliver(c, m.processes, unix.SIGKILL) })
	}
	err := m.listen()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	m.init.hangUp()
	m.collector.stop()
	close(m.recorded)
	return err
}

func (m *Manager) listen() error {
	for {
		message, pipe, err := m.init.conn.Receive()
		switch {
		case err != nil:
			return err
		case message.Reply != nil:
			m.init.answered(message, pipe)
		case message.Exit != nil:
			if c := m.table.byID(message.Exit.ID); c != nil {
				c.exited(message.Exit, nil)
			}
		case message.Done != nil:
			if c := m.table.byID(message.Done.ID); c != nil {
				c.exited(&message.Done.Exit, message.Done)
			}
		case message.Stopping:
			m.table.stopping.Store(true)
		default:
			return errors.New("unknown message from the init process")
		}
	}
}

// List returns all commands that are remembered, the newest first.
func (m *Manager) List() []protocol.Process {
	list, look := []protocol.Process{}, sync.OnceValue(m.processes)
	for _, c := range m.table.all() {
		if !c.isStarting() {
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
	return withDescendants(c, m.processes), nil
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
			return withDescendants(c, m.processes), nil
		}
		select {
		case <-changed:
		case <-m.recorded: // Until then an end that is known may not be told yet.
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
