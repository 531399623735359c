// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"parley.dev/parley/internal/workspace/agent/initproc"
	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/protocol"
)

// maxCapturedError is how much is kept of what a captured program writes to its standard error.
const maxCapturedError = 4 << 10

// ExitError means that a captured program has failed.
type ExitError struct {
	// Code is its exit code; -1: a signal ended it.
	Code int
	// Message is what it wrote to its standard error.
	Message string
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("it has exit code %d", e.Code)
	}
	return e.Message
}

// Capture runs a program for the agent itself, as commands run, but without a record: no list shows it, and no limit
// counts it. The program gets the input, and read gets what it writes to standard output. When read returns an error,
// or ctx is done, the program is killed.
func (m *Manager) Capture(ctx context.Context, r *protocol.StartRequest, input string,
	read func(io.Reader) error) error {
	c, err := m.startCaptured(r)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, c.end)()
	var streams sync.WaitGroup
	defer streams.Wait()
	defer c.end()
	message := make(chan string, 1)
	streams.Go(func() {
		_, _ = io.WriteString(c.socket, input) // The program need not read it.
		_ = c.socket.CloseWrite()
	})
	streams.Go(func() {
		text, _ := io.ReadAll(io.LimitReader(c.output, maxCapturedError)) // A part is enough.
		message <- strings.TrimSpace(string(text))
		_, _ = io.Copy(io.Discard, c.output)
	})
	err = read(c.socket)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case status := <-c.exited:
		if status == 0 {
			return nil
		}
		c.kill() // Otherwise the message may have no end.
		return &ExitError{Code: status.ExitStatus(), Message: <-message}
	}
}

// captured is a running program whose output the agent reads.
type captured struct {
	processes func() []proctree.Process
	// supervisor is the process below which it runs.
	supervisor int
	socket     *net.UnixConn
	output     *os.File
	// exited has its status, and over is closed when no process of it is left.
	exited chan syscall.WaitStatus
	over   chan struct{}
}

func (m *Manager) startCaptured(r *protocol.StartRequest) (*captured, error) {
	p, err := newPlan(&m.options, r)
	if err != nil {
		return nil, err
	}
	socket, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }() // The program has it.
	p.Socket = theirs
	c := &captured{processes: m.table.processes, socket: socket, exited: make(chan syscall.WaitStatus, 1),
		over: make(chan struct{})}
	var exit, end sync.Once
	started, err := m.options.Init.Start(&p.Spec, func(s initproc.State) {
		if s.Exited {
			exit.Do(func() { c.exited <- s.Status })
		}
		if s.Done {
			end.Do(func() { close(c.over) })
		}
	})
	if err != nil {
		_ = socket.Close() // Nothing was written.
		return nil, whyNot(p, err)
	}
	c.supervisor, c.output = started.Supervisor, started.Output
	return c, nil
}

// end kills what is left, and closes the streams.
func (c *captured) end() {
	c.kill()
	_ = c.socket.Close() // Nothing that matters is in it.
	_ = c.output.Close() // It was only read.
}

func (c *captured) kill() {
	proctree.Kill(func() (left, all []proctree.Process) {
		select {
		case <-c.over: // The process id of the supervisor may be another one's.
			return nil, nil
		default:
		}
		all = c.processes()
		for _, p := range proctree.Below(all, c.supervisor) {
			if !p.Ended {
				left = append(left, p)
			}
		}
		return left, all
	})
}
