// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts of models, tools and other people safe to display. Terminals act on control characters:
// they rewrite lines above, set titles and clipboards, and send input. Bidirectional formats and characters without
// width make a text look like another one. None of them pass:
//
//   - control characters (C0, DEL, C1), but for newlines and tabs where a text may have several lines;
//   - line and paragraph separators (U+2028, U+2029), formats (Unicode category Cf), and other invisible characters;
//   - private use, noncharacters, and bytes that are no UTF-8.
//
// Two joiners (U+200C, U+200D) pass where scripts and emojis need them: once, after what they can join. Escape and JSON
// escape what does not pass, Line and Text omit it. The package is pure, and imports only the standard library.
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

const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// Line is the text in one line: each run of spaces, line breaks and control characters is one space. Other characters
// that do not pass are omitted.
func Line(text string) string {
	return strings.Join(strings.Fields(strip(text, func(rune) rune { return ' ' })), " ")
}

// Text is the text without what does not pass. Newlines and tabs stay.
func Text(text string) string {
	return strip(strings.ReplaceAll(text, "\r\n", "\n"), func(r rune) rune {
		if r == '\r' || r == '\u2028' || r == '\u2029' {
			return '\n'
		}
		return -1
	})
}

// strip omits what does not pass. instead returns the replacement of a control character or a separator, or a negative
// rune.
func strip(text string, instead func(rune) rune) string {
	if isClean(text) {
		return text
	}
	var b strings.Builder
	before := rune(-1)
	for at, r := range text {
		switch {
		case r == utf8.RuneError && isInvalid(text[at:]):
			continue
		case !passes(r, before):
			if !unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp) {
				continue
			}
			if r = instead(r); r < 0 {
				continue
			}
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// Escape is the text with escapes for what does not pass, such as \u001b, and \x9b for an invalid byte. A carriage
// return before a newline is omitted.
func Escape(text string) string {
	if isClean(text) {
		return text
	}
	var e Escaper
	return e.Add(text) + e.End()
}

// Escaper escapes a text in pieces, with the same result as Escape. The zero Escaper is at the beginning.
type Escaper struct {
	// before is the last rune, 0 at the beginning.
	before rune
	// held depends on the next piece: a carriage return, or the beginning of a rune.
	held string
}

// Add takes the next piece and returns what can be shown so far.
func (e *Escaper) Add(piece string) string {
	text := e.held + piece
	e.held = ""
	if text != "" && isClean(text) {
		e.before, _ = utf8.DecodeLastRuneInString(text)
		return text
	}
	var b strings.Builder
	for at := 0; at < len(text); {
		rest := text[at:]
		if rest == "\r" || !utf8.FullRuneInString(rest) {
			e.held = rest
			break
		}
		r, size := utf8.DecodeRuneInString(rest)
		at += size
		if r == '\r' && text[at] == '\n' {
			continue
		}
		e.put(&b, r, rest[:size])
	}
	return b.String()
}

// End returns the held rest, and resets the Escaper.
func (e *Escaper) End() string {
	var b strings.Builder
	if e.held == "\r" {
		e.put(&b, '\r', e.held)
	} else {
		for i := range len(e.held) {
			e.put(&b, utf8.RuneError, e.held[i:i+1])
		}
	}
	*e = Escaper{}
	return b.String()
}

func (e *Escaper) put(b *strings.Builder, r rune, encoded string) {
	switch {
	case r == utf8.RuneError && len(encoded) == 1:
		fmt.Fprintf(b, `\x%02x`, encoded[0])
		e.before = 'x'
	case passes(r, e.before):
		b.WriteString(encoded)
		e.before = r
	case r > 0xffff:
		fmt.Fprintf(b, `\U%08x`, r)
		e.before = 'U'
	default:
		fmt.Fprintf(b, `\u%04x`, r)
		e.before = 'u'
	}
}

// isClean reports whether a text without joiners passes unchanged, as most do.
func isClean(text string) bool {
	for at, r := range text {
		if !passes(r, -1) || r == utf8.RuneError && isInvalid(text[at:]) {
			return false
		}
	}
	return true
}

// isInvalid reports whether a text begins with invalid UTF-8.
func isInvalid(text string) bool {
	_, size := utf8.DecodeRuneInString(text)
	return size == 1
}

// passes reports whether a rune may be shown after another one; negative or 0: after none.
func passes(r, before rune) bool {
	switch {
	case r == '\n', r == '\t', r >= ' ' && r < 0x7f:
		return true
	case r == joiner:
		return joins(before) || before == '\ufe0f' || unicode.In(before, unicode.So, unicode.Sk)
	case r == nonJoiner:
		return joins(before)
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // Formats that are seen, such as the Arabic number sign.
		return true
	}
	return !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point,
		unicode.Other_Default_Ignorable_Code_Point)
}

// joining are the scripts whose letters change their form at a joiner.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Bengali, unicode.Devanagari, unicode.Gujarati, unicode.Gurmukhi, unicode.Kannada,
	unicode.Khmer, unicode.Malayalam, unicode.Mongolian, unicode.Myanmar, unicode.Oriya, unicode.Sinhala, unicode.Syriac,
	unicode.Tamil, unicode.Telugu,
}

func joins(r rune) bool { return r > 0 && unicode.In(r, joining...) }

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
