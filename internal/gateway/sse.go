// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/netguard/slowclient"
)

// eventWriter writes server-sent events, which are on their way when a call returns. It belongs to one goroutine.
type eventWriter struct {
	*slowclient.Writer
	w    http.ResponseWriter
	head []byte
}

func newEventWriter(w http.ResponseWriter, timeout time.Duration) *eventWriter {
	return &eventWriter{Writer: slowclient.New(w, timeout), w: w}
}

// begin sends the header, and how long a client should wait before it comes back. From now on the client has nothing to
// say, so nothing is waited for.
func (e *eventWriter) begin() error {
	e.IgnoreReads()
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
	for _, event := range events {
		e.head = e.head[:0]
		if event.ID != "" {
			e.head = append(append(append(e.head, "id: "...), event.ID...), '\n')
		}
		e.head = append(append(append(e.head, "event: "...), event.Name...), "\ndata: "...)
		for _, piece := range [][]byte{e.head, event.Data, []byte("\n\n")} { // without a copy of long data
			_, _ = e.Write(piece) // Flush says so.
		}
	}
	return e.Flush()
}

// keepAlive writes a comment.
func (e *eventWriter) keepAlive() error { return e.write(": keep-alive\n\n") }

func (e *eventWriter) write(text string) error {
	_, _ = e.Write([]byte(text)) // Flush says so.
	return e.Flush()
}
