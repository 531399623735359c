// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"
)

const (
	// maxEventBytes is the longest event, or document, that is read: more than transport lets through of one event.
	maxEventBytes = 17 << 20
	// maxRestBytes and restTimeout bound what is read, and waited for, behind the last event.
	maxRestBytes = 4 << 10
	restTimeout  = 100 * time.Millisecond
)

// eventBody is a stream whose events pass an interceptor. It follows the HTML standard: a byte order mark, any end of a
// line, several lines of data, and events without data are read as it says. An event that is no JSON breaks the stream,
// and so does one that the stream ends within: some libraries take half an event for a whole one.
type eventBody struct {
	io.ReadCloser
	interceptor Interceptor
	surrogates  surrogates
	// document is a JSON document that follows the events, such as an error of Google; atLine is whether a line begins.
	document []byte
	atLine   bool
	// failure is how reading ended, if not with the end: the parser puts an error of its own in its place.
	failure error
	next    func() (sse.Event, error, bool)
	stop    func()
	out     []byte
	err     error
}

func newEventBody(body io.ReadCloser, interceptor Interceptor) *eventBody {
	// What follows completes a last event that ends with its line, or with nothing.
	b := &eventBody{ReadCloser: body, interceptor: interceptor}
	whole := io.MultiReader(readerFunc(b.read), strings.NewReader("\n\n"))
	b.next, b.stop = iter.Pull2(sse.Read(whole, &sse.ReadConfig{MaxEventSize: maxEventBytes}))
	return b
}

// readerFunc is a reader that is a function.
type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// read reads what the server sends, up to a document among the events.
func (b *eventBody) read(p []byte) (int, error) {
	if b.document != nil {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failure = err
	}
	for i, c := range p[:n] {
		if c == '{' && b.atLine {
			b.document, b.failure = readDocument(io.MultiReader(bytes.NewReader(p[i:n]), b.ReadCloser))
			return i, cmp.Or(b.failure, io.EOF)
		}
		b.atLine = c == '\n' || c == '\r'
	}
	return n, err
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 && b.err == nil {
		b.out, b.err = b.event()
	}
	if len(b.out) == 0 {
		return 0, b.err
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// event is the next event as it is to be read; empty for one without data.
func (b *eventBody) event() ([]byte, error) {
	event, err, ok := b.next()
	switch {
	case err != nil:
		return nil, cmp.Or(b.failure, err)
	case !ok && b.document == nil:
		return nil, io.EOF
	case !ok:
		event.Data, b.document = string(b.document), nil
	}
	data, err := b.data(event)
	if len(data) == 0 || err != nil {
		return nil, err
	}
	var out []byte
	if event.Type != "" {
		out = append(out, "event: "+event.Type+"\n"...)
	}
	out = append(out, b.interceptor.Line(append([]byte("data: "), data...))...)
	return append(out, "\n\n"...), nil
}

// data is what the event says, in one line; empty if it only keeps the connection alive.
func (b *eventBody) data(event sse.Event) ([]byte, error) {
	data := bytes.TrimSpace([]byte(event.Data))
	switch {
	case len(data) == 0, bytes.Equal(data, EndOfEvents):
		return data, nil
	case json.Valid(data):
		return b.surrogates.join(bytes.ReplaceAll(data, []byte("\n"), []byte(" "))), nil
	case event.Type == "error":
		return json.Marshal(errorEvent{Type: "error", Error: errorText{string(data)}})
	case event.Type != "" && data[0] != '{' && data[0] != '[':
		return nil, nil
	}
	return nil, fmt.Errorf("reading an event that is not JSON: %w", io.ErrUnexpectedEOF)
}

// errorEvent is an error that came as a text.
type errorEvent struct {
	Type  string    `json:"type"`
	Error errorText `json:"error"`
}

type errorText struct {
	Message string `json:"message"`
}

// Close implements io.Closer. OpenAI's library closes a stream at its last event, before its end has come; but over
// HTTP/1.1 a connection whose answer was not read to the end is not used again.
func (b *eventBody) Close() error {
	b.stop()
	if b.err == nil {
		late := time.AfterFunc(restTimeout, func() { _ = b.ReadCloser.Close() })
		defer late.Stop()
		_, _ = io.CopyN(io.Discard, b.ReadCloser, maxRestBytes) // It is discarded.
	}
	return b.ReadCloser.Close()
}
