// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slowclient serves clients that may be slow, or silent: each piece of an answer has to be taken, and
// each piece of a request has to arrive, within a timeout, however long the whole is.
package slowclient

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Writer writes the body of an answer. It belongs to one goroutine.
type Writer struct {
	to      http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	// failed is why the client takes no more; nil as long as it does.
	failed error
}

// New returns a writer to a client that has the timeout for each piece.
func New(to http.ResponseWriter, timeout time.Duration) *Writer {
	return &Writer{to: to, control: http.NewResponseController(to), timeout: timeout}
}

// IgnoreReads lifts the deadline of reading the request: when it comes, an answer that lasts would end.
func (w *Writer) IgnoreReads() {
	if w.failed == nil {
		w.failed = supported(w.control.SetReadDeadline(time.Time{}))
	}
}

// Write implements io.Writer. Once it has failed, it fails always.
func (w *Writer) Write(p []byte) (int, error) {
	if w.bound(); w.failed != nil {
		return 0, w.Err()
	}
	n, err := w.to.Write(p)
	w.failed = err
	return n, w.Err()
}

// Flush sends what was written, and lifts the deadline: HTTP/2 ends a stream whose deadline passes, even an idle one.
func (w *Writer) Flush() error {
	if w.bound(); w.failed == nil {
		w.failed = w.control.Flush()
	}
	if w.failed == nil {
		w.failed = supported(w.control.SetWriteDeadline(time.Time{}))
	}
	return w.Err()
}

// Close bounds how long the client may take to accept the end of the answer, which the server sends.
func (w *Writer) Close() { w.bound() }

// bound gives the client the timeout from now on.
func (w *Writer) bound() {
	if w.failed == nil {
		w.failed = supported(w.control.SetWriteDeadline(time.Now().Add(w.timeout)))
	}
}

// Err is why the client takes no more; nil as long as it does.
func (w *Writer) Err() error {
	if w.failed == nil {
		return nil
	}
	return fmt.Errorf("writing to the client: %w", w.failed)
}

// supported is err, unless it is that there are no deadlines, as in answers that are recorded.
func supported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}
