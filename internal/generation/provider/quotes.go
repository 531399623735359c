// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import "strings"

// quoteLength is the length from which a run of the same characters counts as a quotation: no two texts have so many in
// common by chance.
const quoteLength = 24

// quotes tells whether a provider's error message repeats part of the prompt. A message that does is not told: people
// other than those who may read a conversation read conditions and events.
func quotes(said string, private []string) bool {
	for _, text := range private {
		text = strings.TrimSpace(text)
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
