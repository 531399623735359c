// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley.dev/parley/api/stream"
)

// eventWriter writes server-sent events, which are on their way when a call returns. It belongs to one goroutine.
type eventWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	head    []byte
	// failed is why the client takes no more; nil as long as it does.
	failed error
}

func newEventWriter(w http.ResponseWriter, timeout time.Duration) *eventWriter {
	return &eventWriter{w: w, rc: http.NewResponseController(w), timeout: timeout}
}

// begin sends the header, and how long a client should wait before it comes back. From now on the client has nothing to
// say, so nothing is waited for.
func (e *eventWriter) begin() error {
	if err := e.rc.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("putting the read deadline off: %w", err)
	}
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	return e.write("retry: 1000\n\n")
}

func (e *eventWriter) send(event stream.Event) error { return e.sendAll([]stream.Event{event}) }

// sendAll writes events that come together, at once.
func (e *eventWriter) sendAll(events []stream.Event) error {
	e.hold()
	for _, event := range events {
		e.head = e.head[:0]
		if event.ID != "" {
			e.head = append(append(append(e.head, "id: "...), event.ID...), '\n')
		}
		e.head = append(append(append(e.head, "event: "...), event.Name...), "\ndata: "...)
		e.put(e.head)
		e.put(event.Data) // without a copy of a long one
		e.put([]byte("\n\n"))
	}
	return e.flush()
}

// keepAlive writes a comment.
func (e *eventWriter) keepAlive() error { return e.write(": keep-alive\n\n") }

// end bounds how long the client may take to accept the end of the stream.
func (e *eventWriter) end() { _ = e.rc.SetWriteDeadline(time.Now().Add(e.timeout)) }

func (e *eventWriter) write(text string) error {
	e.hold()
	e.put([]byte(text))
	return e.flush()
}

// hold begins to write. The deadline holds while something is being written: HTTP/2 ends a stream whose deadline
// passes, even an idle one.
func (e *eventWriter) hold() {
	if e.failed == nil {
		e.failed = e.rc.SetWriteDeadline(time.Now().Add(e.timeout))
	}
}

func (e *eventWriter) put(piece []byte) {
	if e.failed == nil {
		_, e.failed = e.w.Write(piece)
	}
}

// flush brings on its way what was written.
func (e *eventWriter) flush() error {
	if e.failed == nil {
		e.failed = e.rc.Flush()
	}
	if e.failed == nil {
		e.failed = e.rc.SetWriteDeadline(time.Time{})
	}
	if e.failed != nil {
		return fmt.Errorf("writing an event: %w", e.failed)
	}
	return nil
}
