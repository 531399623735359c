// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// events is a stream of events without those that are no message of the protocol, such as "ping". The library ends the
// session because of one, and because of a line without a colon.
type events struct {
	io.Closer
	lines *bufio.Reader
	// resumable is whether the library uses the ids of events. Else it ends the session because of one without data.
	resumable bool
	// pending is the part of the newest event that is not yet read.
	pending []byte
	err     error
}

func newEvents(body io.ReadCloser, resumable bool) *events {
	return &events{Closer: body, lines: bufio.NewReader(body), resumable: resumable}
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.pending) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.pending, e.err = e.next()
	}
	n := copy(p, e.pending)
	e.pending = e.pending[n:]
	return n, nil
}

// next reads an event. If its data is not a message, only its id and its delay remain. At the end of the stream, they
// do not: the event may be cut off, and the stream is resumed after the last id.
func (e *events) next() ([]byte, error) {
	var event event
	for {
		line, err := e.lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		isEnd := event.add(line)
		switch {
		case !isEnd && err == nil:
		case event.isMessage():
			return event.bytes(e.resumable, true), err
		case err != nil:
			return nil, err
		default:
			return event.bytes(e.resumable, false), nil
		}
	}
}

// event is what has come of an event.
type event struct {
	name string
	data []byte
	// message are the lines of data and name; others are those of the id, the delay and comments.
	message, others []byte
}

// add adds a line, and reports whether it ends the event. The newest line of a stream may have no end.
func (e *event) add(line []byte) (isEnd bool) {
	line = bytes.TrimRight(line, "\r\n")
	field, value, isField := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	lines := &e.message
	switch {
	case !isField: // It has no value.
		return len(field) == 0
	case string(field) == "data":
		e.data = append(append(e.data, value...), '\n')
	case string(field) == "event":
		e.name = string(value)
	default:
		lines = &e.others
	}
	*lines = append(append(*lines, line...), '\n')
	return false
}

// bytes are the lines of the event, with or without the others and the message.
func (e *event) bytes(others, message bool) (lines []byte) {
	if others {
		lines = e.others
	}
	if message {
		lines = append(lines, e.message...)
	}
	return append(lines, '\n')
}

// isMessage reports whether the library can read the event. It takes the event "endpoint" of the old transport.
func (e *event) isMessage() bool {
	switch e.name {
	case "endpoint":
		return true
	case "", "message":
		_, err := jsonrpc.DecodeMessage(e.data)
		return err == nil
	}
	return false
}
