// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"strings"
	"unicode"
)

// quoteLength is the length from which a run of the same letters and digits, in bytes, counts as a quotation: hardly
// any two texts have so many in common by chance, and if they do, no more is lost than the provider's own words.
const quoteLength = 18

// quotes reports whether a provider's error message repeats part of the prompt, however it is spaced, escaped or
// written in capitals. A message that does is not told: people other than those who may read a conversation read
// conditions and events.
func quotes(said string, private []string) bool {
	said = folded(unescaped.Replace(said))
	for _, text := range private {
		text = folded(text)
		if len(text) > 3 && strings.Contains(said, text) {
			return true
		}
		for i := 0; i+quoteLength <= len(said); i++ {
			if strings.Contains(text, said[i:i+quoteLength]) {
				return true
			}
		}
	}
	return false
}

// unescaped takes away JSON's escapes for white space: their letters would cut a quotation into short runs.
var unescaped = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ")

// folded are the letters and digits of a text, in small letters.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
