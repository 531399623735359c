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
)

// command is one that was forked and that the serving process has not yet let go.
type command struct {
	id        string
	pid       int
	startedAt time.Time
	// pipe is the read end of what the command writes to.
	pipe int
	// spoken is whether its standard input and output are a socket of the serving process.
	spoken bool
	exit   *link.Exit
}

func (c *command) describe() *link.Command {
	return &link.Command{ID: c.id, PID: c.pid, StartedAt: c.startedAt, Spoken: c.spoken, Exit: c.exit}
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
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case m.Start != nil:
		i.start(m.Seq, m.Start, file)
	case m.Signal != nil:
		i.tell(&link.Message{Seq: m.Seq, Reply: &link.Reply{Errno: i.signal(m.Signal)}}, -1)
	case m.Forget != "":
		i.forget(m.Forget)
	default:
		return errors.New("a message that is no request")
	}
	return nil
}

// start answers with the command of that id, and forks it if there is none. Its standard input and output are the
// socket, if there is one.
func (i *Init) start(seq int64, s *link.Start, socket *os.File) {
	c, err := i.commands[s.ID], error(nil)
	if c == nil {
		c, err = i.launch(s, socket)
	}
	if err != nil {
		errno := syscall.EINVAL
		_ = errors.As(err, &errno) // What the operating system did not say is a request without sense.
		i.tell(&link.Message{Seq: seq, Reply: &link.Reply{Errno: errno}}, -1)
		return
	}
	i.tell(&link.Message{Seq: seq, Reply: &link.Reply{Command: c.describe()}}, c.pipe)
}

// launch forks a command in a session of its own. Standard error, and output where there is no socket, are one pipe,
// whose other end is kept. ForkExec returns when the new program runs, or after it has reaped what could become none.
func (i *Init) launch(s *link.Start, socket *os.File) (*command, error) {
	if s.ID == "" || len(s.Argv) == 0 || len(s.Path) == 0 {
		return nil, syscall.EINVAL
	}
	if i.stopping {
		return nil, syscall.ESHUTDOWN
	}
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
	pid, err := i.system.fork(string(s.Path), texts(s.Argv), &syscall.ProcAttr{
		Dir:   string(s.Dir),
		Env:   texts(s.Env),
		Files: []uintptr{input, output, uintptr(pipe[1])},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forking: %w", err), unix.Close(pipe[0]))
	}
	c := &command{id: s.ID, pid: pid, startedAt: i.Now(), pipe: pipe[0], spoken: socket != nil}
	i.commands[c.id], i.byPID[c.pid] = c, c
	return c, nil
}

func texts(words [][]byte) []string {
	texts := make([]string, len(words))
	for n, word := range words {
		texts[n] = string(word)
	}
	return texts
}

// signal reaches the process group of a command that has not been reaped, whose number is its own therefore.
func (i *Init) signal(s *link.Signal) syscall.Errno {
	c := i.commands[s.ID]
	if c == nil || c.exit != nil {
		return syscall.ESRCH
	}
	if err := i.system.kill(-c.pid, s.Signal); err != nil {
		errno := syscall.EINVAL
		_ = errors.As(err, &errno) // It is one.
		return errno
	}
	return 0
}

// forget lets a command go that has ended.
func (i *Init) forget(id string) {
	c := i.commands[id]
	if c == nil || c.exit == nil {
		return
	}
	delete(i.commands, id)
	// An error would mean that it is closed already.
	_ = unix.Close(c.pipe)
}
