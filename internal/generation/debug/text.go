// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"parley.dev/parley/internal/clip"
)

// shortened is the beginning of a text, at most so many characters, and says how many there were.
func shortened(text string, runes int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	kept := clip.Runes(text, runes)
	if len(kept) == len(text) {
		return text
	}
	return kept + fmt.Sprintf(" [cut: %d characters in all]", utf8.RuneCountInString(text))
}

// bound cuts a name, which is at most so many characters then.
func bound(name string, runes int) string {
	return clip.Ellipsis(strings.ToValidUTF8(name, "\uFFFD"), runes)
}
