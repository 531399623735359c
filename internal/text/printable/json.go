// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON is the same JSON with what does not pass escaped, as it can only stand in strings: who decodes it gets what was
// encoded. Spaces and line breaks between values stay. Bytes that are no UTF-8 become U+FFFD,
// which decoders take them for.
func JSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		switch {
		case r == utf8.RuneError && size == 1:
			out = utf8.AppendRune(out, r)
		case r == '\r', passes(r, -1):
			out = append(out, raw[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		raw = raw[size:]
	}
	return out
}

// JSONWriter returns a writer of JSON to w, such as that of a logger. Each write must be whole values.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ to io.Writer }

// Write implements io.Writer.
func (w jsonWriter) Write(p []byte) (int, error) {
	if _, err := w.to.Write(JSON(p)); err != nil {
		return 0, err // It is the writer's own.
	}
	return len(p), nil
}
