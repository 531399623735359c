// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package faultclient

import (
	"errors"
	"io"
	"sync"
	"time"
)

// lagging is a body whose content comes a fixed time after it was sent.
type lagging struct {
	body   io.ReadCloser
	chunks chan chunk
	closed chan struct{}
	once   sync.Once
	// current is the chunk that is being read.
	current chunk
}

// chunk is what one read of the body yielded.
type chunk struct {
	data []byte
	err  error
	due  time.Time
}

// heldChunks is how many chunks a lagging body holds; a server that sends more has to wait.
const heldChunks = 1024

func newLagging(body io.ReadCloser, delay time.Duration) *lagging {
	l := &lagging{body: body, chunks: make(chan chunk, heldChunks), closed: make(chan struct{})}
	go l.pump(delay)
	return l
}

// pump takes in what the server sends. It ends with the body, at the latest when that is closed.
func (l *lagging) pump(delay time.Duration) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := l.body.Read(buffer)
		c := chunk{data: append([]byte(nil), buffer[:n]...), err: err, due: time.Now().Add(delay)}
		select {
		case l.chunks <- c:
		case <-l.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read waits until the next content is due.
func (l *lagging) Read(p []byte) (int, error) {
	for len(l.current.data) == 0 {
		if l.current.err != nil {
			return 0, l.current.err
		}
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.current.data)
	l.current.data = l.current.data[n:]
	return n, nil
}

var errClosed = errors.New("the body is closed")

func (l *lagging) next() error {
	var c chunk
	select {
	case c = <-l.chunks:
	case <-l.closed:
		return errClosed
	}
	timer := time.NewTimer(time.Until(c.due))
	defer timer.Stop()
	select {
	case <-timer.C:
		l.current = c
		return nil
	case <-l.closed:
		return errClosed
	}
}

// Close ends the body and what reads it.
func (l *lagging) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.body.Close()
}
