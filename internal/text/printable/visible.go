// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxRun is the longest run of spaces, tabs or newlines that Visible shows as it is. Deeper indentation is rare, and a
// run that fills a line of a terminal, or its height, hides what stands behind it.
const maxRun = 32

// brailleBlank is a symbol that looks like a space.
const brailleBlank = '\u2800'

// Visible is the text as people can decide by it: what Escape spells out, and also every space but U+0020, each
// character of a run of more than 32 spaces, tabs or newlines, and variation selectors that select nothing.
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

// visible writes a text, and has escape write what cannot be seen in it.
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
		if passes(r, before) && seen(r, before) {
			b.WriteRune(r)
		} else {
			escape(r)
		}
		at, before = at+size, r
	}
}

// run is how many spaces, tabs or newlines of one kind a text begins with.
func run(text string) int {
	if text[0] != ' ' && text[0] != '\t' && text[0] != '\n' {
		return 0
	}
	return len(text) - len(strings.TrimLeft(text, text[:1]))
}

// seen reports whether a rune that passes behind another one can also be seen there.
func seen(r, before rune) bool {
	switch {
	case unicode.Is(unicode.Variation_Selector, r):
		return (r == '\ufe0e' || r == '\ufe0f') && unicode.In(before, unicode.So, unicode.Sk)
	case r == brailleBlank:
		return false
	}
	return r == ' ' || !unicode.Is(unicode.Zs, r)
}

// VisibleJSON is the same JSON as people can decide by it: without whitespace between values, and with the characters
// of strings as they are, but for those that Visible spells out. A decoder gets what it gets from raw, duplicate
// members and all digits of numbers included. ok is false if raw is no JSON.
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
