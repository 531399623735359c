// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

const (
	// chunkSize is how much is read at once.
	chunkSize = 16 << 10
	// maxLineBytes is the longest line that is looked at: 16 MiB, more than an event with an image has. A longer one
	// passes.
	maxLineBytes = 16 << 20
	// maxRestBytes and restTimeout bound what is read, and waited for, behind the last event.
	maxRestBytes = 4 << 10
	restTimeout  = 100 * time.Millisecond
)

// lineBody is a body whose lines pass an interceptor. It hands on whole lines: who reads it makes nothing of less. A
// stream that ends within an event ends with an error, like one whose connection breaks, since some libraries take half
// an event for a whole one.
type lineBody struct {
	io.ReadCloser
	interceptor Interceptor
	// in is the beginning of a line, out what is to be read, from done on.
	in, out []byte
	done    int
	chunk   []byte
	// passing is true until the end of a line that is too long.
	passing bool
	err     error
}

// Read implements io.Reader.
func (b *lineBody) Read(p []byte) (int, error) {
	for b.done == len(b.out) && b.err == nil {
		b.fill()
	}
	if b.done == len(b.out) {
		return 0, b.err
	}
	n := copy(p, b.out[b.done:])
	b.done += n
	return n, nil
}

// Close implements io.Closer. OpenAI's library closes a stream at its last event, before its end has come; but over
// HTTP/1.1 a connection whose answer was not read to the end is not used again.
func (b *lineBody) Close() error {
	if b.err == nil {
		late := time.AfterFunc(restTimeout, func() { _ = b.ReadCloser.Close() })
		defer late.Stop()
		_, _ = io.CopyN(io.Discard, b.ReadCloser, maxRestBytes) // Nothing of it is of use.
	}
	return b.ReadCloser.Close()
}

// fill reads once.
func (b *lineBody) fill() {
	b.out, b.done = b.out[:0], 0
	if b.chunk == nil {
		b.chunk = make([]byte, chunkSize)
	}
	n, err := b.ReadCloser.Read(b.chunk)
	for rest := b.chunk[:n]; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		b.take(part, ended)
		rest = after
	}
	if err != nil {
		b.end(err)
	}
}

// take takes a piece of a line.
func (b *lineBody) take(part []byte, ended bool) {
	if b.passing || len(b.in)+len(part) > maxLineBytes {
		b.out = append(append(b.out, b.in...), part...)
		if b.in, b.passing = b.in[:0], !ended; ended {
			b.out = append(b.out, '\n')
		}
		return
	}
	if !ended {
		b.in = append(b.in, part...)
		return
	}
	if len(b.in) > 0 {
		b.in = append(b.in, part...)
		part = b.in
	}
	b.out = append(append(b.out, b.interceptor.Line(part)...), '\n')
	b.in = b.in[:0]
}

// end deals with what has no line feed behind it when the body ends.
func (b *lineBody) end(err error) {
	orderly := errors.Is(err, io.EOF)
	switch b.err = err; {
	case orderly && cutOff(b.in):
		b.err = io.ErrUnexpectedEOF
	case orderly && len(b.in) > 0:
		b.out = append(b.out, b.interceptor.Line(b.in)...)
	}
	b.in = nil
}

// cutOff reports whether a last line is an event that is not whole.
func cutOff(line []byte) bool {
	data, ok := EventData(line)
	if !ok {
		return len(line) > 0 && bytes.HasPrefix([]byte("data:"), line)
	}
	return !json.Valid(data) && !bytes.Equal(data, EndOfEvents)
}
