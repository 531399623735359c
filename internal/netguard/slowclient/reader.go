// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package slowclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Reader reads the body of a request, each piece of which has to arrive within a timeout. Only time of reads counts.
// It belongs to one goroutine.
type Reader struct {
	from    io.Reader
	control *http.ResponseController
	piece   int
	timeout time.Duration
	// arrived is how much of the piece has arrived, and left how long the client may take for the rest.
	arrived int
	left    time.Duration
}

// NewReader returns a reader of the body of the request that to answers, in pieces of so many bytes.
func NewReader(from io.Reader, to http.ResponseWriter, piece int, timeout time.Duration) *Reader {
	return &Reader{from: from, control: http.NewResponseController(to), piece: piece, timeout: timeout, left: timeout}
}

// Read implements io.Reader. At the end it lifts the deadline: when it comes, the request would end.
func (r *Reader) Read(p []byte) (int, error) {
	started := time.Now() //nolint:forbidigo // A connection knows no other clock.
	if err := supported(r.control.SetReadDeadline(started.Add(r.left))); err != nil {
		return 0, fmt.Errorf("bounding the time of a read: %w", err)
	}
	n, err := r.from.Read(p)
	r.left -= time.Since(started) //nolint:forbidigo // As above.
	if r.arrived += n; r.arrived >= r.piece {
		r.arrived, r.left = 0, r.timeout
	}
	if errors.Is(err, io.EOF) {
		_ = r.control.SetReadDeadline(time.Time{}) // All has arrived.
	}
	return n, err
}
