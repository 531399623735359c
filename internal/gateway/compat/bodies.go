// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/netguard/limit"
)

// piece is how much of a body is read at a time, in bytes: what somebody holds who sends nothing.
const piece = 64 << 10

// body reads the body, which must come in time and find room.
func (c *call) body(held *limit.Lease) ([]byte, error) {
	_ = c.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // or the server's own holds
	c.read = true
	from := http.MaxBytesReader(c.w, c.r.Body, maxBody)
	var body bytes.Buffer
	for {
		if refused := c.grow(held, piece); refused != nil {
			c.w.Header().Set("Connection", "close") // Nobody reads the rest.
			return nil, refused
		}
		_, err := io.CopyN(&body, from, piece)
		if errors.Is(err, io.EOF) {
			c.patient()
			return body.Bytes(), nil
		}
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &refusal.Error{Status: http.StatusRequestEntityTooLarge, Reason: refusal.TooLarge, Cause: large,
				Message: "the body has more than 16 MiB"}
		}
		if err != nil {
			return nil, &refusal.Error{Status: http.StatusRequestTimeout, Reason: refusal.BadRequest,
				Message: "the body has not come within 20 seconds"}
		}
	}
}
