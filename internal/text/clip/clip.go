// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clip cuts texts to a length between characters, so that valid UTF-8 stays valid. Each invalid byte counts as
// a character. It is pure, and imports only the standard library.
package clip

import "unicode/utf8"

// Bytes is the beginning of the text, at most n bytes.
func Bytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:boundary(text, max(0, n))]
}

// LastBytes is the end of the text, at most n bytes.
func LastBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	from := len(text) - max(0, n)
	if at := boundary(text, from); at < from { // Omit the character around from.
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
	return text[from:]
}

// Runes is the beginning of the text, at most n characters.
func Runes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for at := range text {
		if n <= 0 {
			return text[:at]
		}
		n--
	}
	return text
}

// Ellipsis is the text with at most n characters, of which the last is an ellipsis if something was left out.
func Ellipsis(text string, n int) string {
	if n <= 0 || len(Runes(text, n)) == len(text) {
		return Runes(text, n)
	}
	return Runes(text, n-1) + "…"
}

// boundary is the last place at or before n that is not within a character.
func boundary(text string, n int) int {
	for at := n - 1; at >= 0 && n-at < utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			if _, size := utf8.DecodeRuneInString(text[at:]); at+size > n {
				return at
			}
			break
		}
	}
	return n
}
