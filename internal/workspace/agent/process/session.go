// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// sessionPatience is how long a command has to end after the end of its input, and again after SIGTERM.
	sessionPatience = time.Second
	// flushPatience is how long the client has to read what the command wrote before it ended.
	flushPatience = time.Second
)

// Session is a command whose standard input and output are connected to a client. They are a socket, as those of
// programs that Node's child_process starts. What it writes to its standard error is its output.
type Session struct {
	manager *Manager
	command *command
	socket  *net.UnixConn
}

// Speak starts the command of a session. A key that was used before is refused: a command has one session. Relay must
// follow.
func (m *Manager) Speak(key string, r *protocol.StartRequest) (*Session, error) {
	if !protocol.ValidKey(key) || key == MainKey {
		return nil, refuse(protocol.BadRequest, "%.60q cannot be the key of a session.", key)
	}
	p, err := newPlan(&m.options, r)
	if err != nil {
		return nil, err
	}
	socket, theirs, err := pair()
	if err != nil {
		return nil, refuse(protocol.Internal, "There is no socket for the command: %v.", err)
	}
	defer func() { _ = theirs.Close() }() // The command has it.
	p.Socket = theirs
	c, fresh, err := m.table.reserve(key, p)
	if err == nil && !fresh {
		err = refuse(protocol.BadRequest, "The key %s was used before: each session needs its own key.", key)
	}
	if err == nil {
		failure := m.launch(c, p)
		c.settle(failure)
		if failure == nil {
			return &Session{manager: m, command: c, socket: socket}, nil
		}
		err = failure
	}
	_ = socket.Close() // Nothing was written.
	return nil, err
}

// pair makes a socket: an end for the agent, and one for a command.
func pair() (*net.UnixConn, *os.File, error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "session"), os.NewFile(uintptr(ends[1]), "command")
	defer func() { _ = ours.Close() }() // There is a duplicate.
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close() // Nothing was written.
		return nil, nil, fmt.Errorf("opening a socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// Process is the command as it is.
func (s *Session) Process() protocol.Process { return s.command.describe() }

// Relay connects the client to the command until one of them closes the connection, or ctx is done. Then it ends the
// command and all that it has started, and closes the client.
func (s *Session) Relay(ctx context.Context, client io.ReadWriteCloser) {
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	inputEnded := s.spawn(func() {
		_, _ = io.Copy(input{s}, client) // Either end ends it.
	})
	outputEnded := s.spawn(func() {
		to := &clientWriter{Writer: client}
		_, _ = io.Copy(to, s.socket) // Either end ends it.
		if to.failed {
			_ = client.Close()
			_, _ = io.Copy(io.Discard, s.socket) // A command that cannot write could not end by itself.
		}
	})
	exited := s.spawn(func() {
		_, _ = s.manager.Wait(waiting, s.command.id()) // It is there.
	})
	select {
	case <-inputEnded:
	case <-outputEnded:
	case <-exited:
	case <-ctx.Done():
	}
	s.end(exited)
	_ = s.socket.SetReadDeadline(time.Now().Add(flushPatience)) // It has deadlines.
	<-outputEnded
	_ = client.Close() // It is over.
	_ = s.socket.Close()
	<-inputEnded
}

// spawn runs a part of the session, and closes the channel when it has ended.
func (s *Session) spawn(run func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		guard(s.manager.options.Log, "relaying a session", run)
	}()
	return ended
}

// clientWriter notes whether a client has failed to read.
type clientWriter struct {
	io.Writer
	failed bool
}

// Write implements io.Writer.
func (w *clientWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.failed = err != nil
	return n, err
}

// input is that of the command. The time to write is bounded: until the command reads, a lost client is not noticed.
type input struct{ *Session }

// Write implements io.Writer.
func (i input) Write(p []byte) (int, error) {
	if err := i.socket.SetWriteDeadline(time.Now().Add(i.manager.options.Limits.Unread)); err != nil {
		return 0, fmt.Errorf("bounding the time to write: %w", err)
	}
	return i.socket.Write(p)
}

// end ends the command and all that it has started. The end of its input is to end it.
func (s *Session) end(exited <-chan struct{}) {
	_ = s.socket.CloseWrite() // It may have closed it itself.
	if !closedWithin(exited, sessionPatience) {
		deliver(s.command, s.manager.table.processes, unix.SIGTERM)
		closedWithin(exited, sessionPatience)
	}
	deliver(s.command, s.manager.table.processes, unix.SIGKILL)
}

// closedWithin waits for the channel to be closed, for so long, and reports whether it was.
func closedWithin(closed <-chan struct{}, patience time.Duration) bool {
	select {
	case <-closed:
		return true
	case <-time.After(patience):
		return false
	}
}
