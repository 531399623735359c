// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package traceparent reads the trace context that an object or a request names. What is not exactly a W3C traceparent
// of version 00 is none. It is pure.
package traceparent

import (
	"encoding/hex"
	"strings"
)

// Context is what a traceparent says.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte
	// Sampled is true when the caller records its part of the trace.
	Sampled bool
}

// length is that of version 00: version, trace id, span id and flags in hexadecimal digits, with dashes between.
const length = 55

// Parse reads a W3C traceparent of version 00.
func Parse(s string) (c Context, ok bool) {
	fields := strings.Split(s, "-")
	if len(s) != length || len(fields) != 4 || fields[0] != "00" || strings.ToLower(s) != s {
		return c, false
	}
	var flags [1]byte
	for i, into := range [][]byte{c.TraceID[:], c.SpanID[:], flags[:]} {
		if hex.DecodedLen(len(fields[i+1])) != len(into) {
			return c, false
		}
		if _, err := hex.Decode(into, []byte(fields[i+1])); err != nil {
			return c, false
		}
	}
	c.Sampled = flags[0]&1 == 1
	return c, c.TraceID != [16]byte{} && c.SpanID != [8]byte{}
}
