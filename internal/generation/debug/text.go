// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// clip cuts a text at so many characters, and says so.
func clip(text string, runes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= runes {
		return text
	}
	n := 0
	for at := range text {
		if n == runes {
			return text[:at] + fmt.Sprintf(" [cut: %d characters in all]", utf8.RuneCountInString(text))
		}
		n++
	}
	return text
}

// bound cuts a name, which is at most so many characters then.
func bound(name string, runes int) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	n, last := 0, 0
	for at := range name {
		switch n++; n {
		case runes:
			last = at
		case runes + 1:
			return name[:last] + "…"
		}
	}
	return name
}
