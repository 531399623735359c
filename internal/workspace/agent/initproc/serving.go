// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"parley.dev/parley/internal/workspace/agent/link"
)

// steady is how long a serving process must have lived for the next one to be started without further ado.
const steady = 10 * time.Second

// crowdedFor is how long a serving process is tried to be forked before what is in its way is ended.
const crowdedFor = 10 * time.Second

// serving is one life of the serving process.
type serving struct {
	pid  int
	conn *link.Conn
	out  outbox
	// ended is closed when it was reaped, with its status.
	ended  chan struct{}
	status syscall.WaitStatus
}

// serveUntil keeps a serving process running until it is told to quit. It returns once one has been told all that there
// was to tell: one that died before that has successors, unless there is no time left.
func (i *Init) serveUntil(quit <-chan struct{}) {
	pauses := i.Backoff.Start()
	var crowded crowd
	for {
		began := i.Now()
		whole, err := i.serve(quit)
		if over(quit) && whole || over(i.abandoned) {
			return
		}
		if crowded = i.makeRoom(crowded, err); crowded != (crowd{}) || i.Now().Sub(began) >= steady {
			pauses.Reset()
		}
		wait := pauses.NextBackOff()
		i.Log.Warn("the serving process ended and is started again", "after", wait.String(), "error", err)
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-quit:
			pause.Stop()
			<-time.After(look)
		}
	}
}

// over reports whether a channel is closed.
func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// crowd is since when, and when last, no process could be forked.
type crowd struct{ since, last time.Time }

// makeRoom ends all commands when for a while not even a serving process can be forked: they have forked as many
// processes as may be, and nobody could tell them to end. Now and then one is forked and dies for want of threads. It
// takes and returns how crowded it is.
func (i *Init) makeRoom(c crowd, err error) crowd {
	now := i.Now()
	switch {
	case errors.Is(err, syscall.EAGAIN):
		c.last = now
		if c.since.IsZero() {
			c.since = now
		}
	case now.Sub(c.last) > crowdedFor/2:
		return crowd{}
	}
	if now.Sub(c.since) >= crowdedFor {
		i.Log.Error("no process can be forked: all commands are ended")
		i.system.killAll()
		return crowd{}
	}
	return c
}

// serve is one life of the serving process; it was whole if it ended by itself, as the serving process does once
// nothing more is to be told. All that it has asked for is done before the next one begins, so that what the next one
// is told holds.
func (i *Init) serve(quit <-chan struct{}) (whole bool, err error) {
	s, err := i.startServing()
	if err != nil {
		return false, err
	}
	var sender sync.WaitGroup
	sender.Go(func() { s.out.send(s.conn) })
	sender.Go(func() {
		select {
		case <-quit:
			s.out.close()
		case <-s.ended:
		}
	})
	err = i.receive(s)
	i.awaitEnd(s, errors.Is(err, io.EOF))
	i.table.mu.Lock()
	i.table.serving = nil
	i.table.mu.Unlock()
	s.out.close()
	s.conn.Shut()
	sender.Wait()
	return s.status.Exited() && s.status.ExitStatus() == 0, errors.Join(err, s.conn.Close(), describe(s.status))
}

// awaitEnd waits for the end of a serving process that says nothing more, and ends it if it does not end by itself, or
// if it has said what it should not.
func (i *Init) awaitEnd(s *serving, willEnd bool) {
	patience := time.NewTimer(lastWords)
	defer patience.Stop()
	if willEnd {
		select {
		case <-s.ended:
			return
		case <-patience.C:
		}
	}
	i.table.killServing()
	<-s.ended
}

func describe(status syscall.WaitStatus) error {
	if status.Signaled() {
		return fmt.Errorf("signal %s", status.Signal())
	}
	return fmt.Errorf("exit code %d", status.ExitStatus())
}

// startServing forks a serving process. What it is told first is how things stand; whatever changes comes after that,
// as both happen under the lock.
func (i *Init) startServing() (*serving, error) {
	conn, theirs, err := link.Pair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }() // It is the serving process's now.
	i.awaitStarts()
	i.table.mu.Lock()
	defer i.table.mu.Unlock()
	pid, err := i.system.fork(i.Path, i.Argv, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{i.null.Fd(), 1, 2, ServingDescriptor: theirs.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("forking the serving process: %w", err), conn.Close())
	}
	s := &serving{pid: pid, conn: conn, ended: make(chan struct{}), out: outbox{wake: make(bell, 1)}}
	i.table.serving = s
	i.table.tell(&link.Message{Hello: &link.Hello{Boot: i.boot, Since: i.since, Commands: len(i.table.commands)}}, -1)
	for _, c := range i.table.commands {
		i.table.tell(&link.Message{Command: c.describe()}, c.pipe)
	}
	if i.table.stopping {
		i.table.tell(&link.Message{Stopping: true}, -1)
	}
	return s, nil
}

func (i *Init) receive(s *serving) error {
	for {
		m, file, err := s.conn.Receive()
		if err != nil {
			return err
		}
		if err := i.handle(m, file); err != nil {
			return err
		}
	}
}

// outbox is what the serving process is to be told. Whoever puts something there never waits for it. It stays small:
// a serving process that does not read asks for nothing either, and then only exits come.
type outbox struct {
	mu     sync.Mutex
	queue  []letter
	closed bool
	wake   bell
}

type letter struct {
	message    *link.Message
	descriptor int
}

func (o *outbox) put(m *link.Message, descriptor int) {
	o.mu.Lock()
	o.queue = append(o.queue, letter{message: m, descriptor: descriptor})
	o.mu.Unlock()
	o.wake.ring()
}

// close makes send end once it has sent all.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.wake.ring()
}

// bell wakes who waits for it. It has room for one: who is busy meanwhile hears it later.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// send sends what is put there, until it was closed or nobody receives it any more; then it tells the other side that
// nothing more comes.
func (o *outbox) send(conn *link.Conn) {
	for {
		o.mu.Lock()
		queue, closed := o.queue, o.closed
		o.queue = nil
		o.mu.Unlock()
		for _, l := range queue {
			if err := conn.Send(l.message, l.descriptor); err != nil {
				conn.Shut()
				return
			}
		}
		if len(queue) > 0 {
			continue
		}
		if closed {
			_ = conn.CloseWrite() // If it fails, nobody is there to be told.
			return
		}
		<-o.wake
	}
}
