// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxRun is the longest run of spaces, tabs or newlines that Visible does not escape. A longer one could hide the text
// after it, beyond the edge of a terminal.
const maxRun = 32

// brailleBlank is a symbol that looks like a space.
const brailleBlank = '\u2800'

// Visible is the text for people who decide about it. In addition to Escape, it escapes all spaces but U+0020, each
// character of a run of more than 32 spaces, tabs or newlines, and variation selectors without effect.
func Visible(text string) string {
	var b strings.Builder
	visible(&b, Escape(text), func(r rune) {
		if r > 0xffff {
			fmt.Fprintf(&b, `\U%08x`, r)
			return
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	})
	return b.String()
}

// visible writes a text, and calls escape for its invisible characters.
func visible(b *strings.Builder, text string, escape func(rune)) {
	before := rune(-1)
	for at := 0; at < len(text); {
		if n := run(text[at:]); n > maxRun {
			for range n {
				escape(rune(text[at]))
			}
			before = rune(text[at])
			at += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[at:])
		if passes(r, before) && isVisible(r, before) {
			b.WriteRune(r)
		} else {
			escape(r)
		}
		at, before = at+size, r
	}
}

// run is the number of equal spaces, tabs or newlines that a text begins with.
func run(text string) int {
	if text[0] != ' ' && text[0] != '\t' && text[0] != '\n' {
		return 0
	}
	return len(text) - len(strings.TrimLeft(text, text[:1]))
}

// isVisible reports whether a rune that passes after another one is also visible there.
func isVisible(r, before rune) bool {
	switch {
	case unicode.Is(unicode.Variation_Selector, r):
		return (r == '\ufe0e' || r == '\ufe0f') && unicode.In(before, unicode.So, unicode.Sk)
	case r == brailleBlank:
		return false
	}
	return r == ' ' || !unicode.Is(unicode.Zs, r)
}

// VisibleJSON is the same JSON for people who decide about it: without whitespace between values, and with escapes only
// for what Visible escapes. Duplicate members and all digits of numbers stay. ok is false if raw is no JSON.
func VisibleJSON(raw string) (shown string, ok bool) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(raw)); err != nil {
		return "", false
	}
	var b strings.Builder
	for left := compact.Bytes(); len(left) > 0; {
		n := 1
		if left[0] == '"' {
			n = literal(left)
			var text string
			if err := json.Unmarshal(left[:n], &text); err != nil {
				return "", false
			}
			quote(&b, text)
		} else {
			b.WriteByte(left[0])
		}
		left = left[n:]
	}
	return b.String(), true
}

// literal is the length of the string literal that valid JSON begins with.
func literal(raw []byte) int {
	for at := 1; at < len(raw); at++ {
		switch raw[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(raw)
}

// jsonEscapes are the characters that JSON strings have short escapes for.
var jsonEscapes = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// quote writes a string literal.
func quote(b *strings.Builder, text string) {
	b.WriteByte('"')
	visible(b, jsonEscapes.Replace(text), func(r rune) {
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(b, `\u%04x`, unit)
		}
	})
	b.WriteByte('"')
}

// JSON is the same JSON with escapes in its strings for what does not pass. Spaces and line breaks between values stay.
// Invalid bytes become U+FFFD, as in decoders.
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

// JSONWriter returns a writer that applies JSON, such as for a logger. Each write must have whole values.
func JSONWriter(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ to io.Writer }

// Write implements io.Writer.
func (w jsonWriter) Write(p []byte) (int, error) {
	if _, err := w.to.Write(JSON(p)); err != nil {
		return 0, err // It is the writer's own.
	}
	return len(p), nil
}
