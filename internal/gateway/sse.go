// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley.dev/parley/api/stream"
)

// eventWriter writes server-sent events. Each is on its way when the call returns. It belongs to one goroutine.
type eventWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	head    bytes.Buffer
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
	return e.write([]byte("retry: 1000\n\n"))
}

func (e *eventWriter) send(event stream.Event) error {
	e.head.Reset()
	if event.ID != "" {
		fmt.Fprintf(&e.head, "id: %s\n", event.ID)
	}
	fmt.Fprintf(&e.head, "event: %s\ndata: ", event.Name)
	return e.write(e.head.Bytes(), event.Data, []byte("\n\n"))
}

func (e *eventWriter) keepAlive() error { return e.write([]byte(": keep-alive\n\n")) }

// end bounds how long the client may take to accept the end of the stream.
func (e *eventWriter) end() { _ = e.rc.SetWriteDeadline(time.Now().Add(e.timeout)) }

// write writes the pieces of one event, without a copy of a long one. The deadline holds while something is being
// written: HTTP/2 ends a stream whose deadline passes, even an idle one.
func (e *eventWriter) write(pieces ...[]byte) error {
	if e.failed != nil {
		return e.failed
	}
	e.failed = e.rc.SetWriteDeadline(time.Now().Add(e.timeout))
	for _, piece := range pieces {
		if e.failed == nil {
			_, e.failed = e.w.Write(piece)
		}
	}
	if e.failed == nil {
		e.failed = e.rc.Flush()
	}
	if e.failed == nil {
		e.failed = e.rc.SetWriteDeadline(time.Time{})
	}
	if e.failed != nil {
		e.failed = fmt.Errorf("writing an event: %w", e.failed)
	}
	return e.failed
}
