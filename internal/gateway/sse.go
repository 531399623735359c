// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"parley.dev/parley/internal/gateway/follow"
)

// eventWriter writes server-sent events. Each is on its way when the call returns. It belongs to one goroutine.
type eventWriter struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	timeout time.Duration
	buf     bytes.Buffer
}

func newEventWriter(w http.ResponseWriter, timeout time.Duration) *eventWriter {
	return &eventWriter{w: w, rc: http.NewResponseController(w), timeout: timeout}
}

// begin sends the header, and how long a client should wait before it comes back.
func (e *eventWriter) begin() error {
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	return e.write([]byte("retry: 1000\n\n"))
}

func (e *eventWriter) send(event follow.Event) error {
	e.buf.Reset()
	if event.ID != "" {
		fmt.Fprintf(&e.buf, "id: %s\n", event.ID)
	}
	fmt.Fprintf(&e.buf, "event: %s\ndata: %s\n\n", event.Name, event.Data)
	return e.write(e.buf.Bytes())
}

func (e *eventWriter) keepAlive() error { return e.write([]byte(": keep-alive\n\n")) }

func (e *eventWriter) write(b []byte) error {
	if err := e.rc.SetWriteDeadline(time.Now().Add(e.timeout)); err != nil {
		return fmt.Errorf("set the write deadline: %w", err)
	}
	if _, err := e.w.Write(b); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if err := e.rc.Flush(); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}
