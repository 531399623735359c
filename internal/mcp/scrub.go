// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"slices"
	"strings"
)

// minSecret is how many bytes a value has at least that is taken out of texts: 8. Shorter ones stand in many a text
// that has nothing to do with them.
const minSecret = 8

// hidden stands in place of a secret.
const hidden = "[secret]"

// scrubber takes secrets out of texts, also where JSON escapes them.
type scrubber struct{ replacer *strings.Replacer }

// newScrubber returns one for the values.
func newScrubber(values []string) scrubber {
	var pairs []string
	// The longest first, so that nothing is left of one that begins with another.
	values = slices.SortedFunc(slices.Values(values), func(a, b string) int { return len(b) - len(a) })
	for _, value := range values {
		if len(value) < minSecret {
			continue
		}
		pairs = append(pairs, value, hidden)
		if escaped, err := json.Marshal(value); err == nil {
			if inner := string(escaped[1 : len(escaped)-1]); inner != value {
				pairs = append(pairs, inner, hidden)
			}
		}
	}
	if pairs == nil {
		return scrubber{}
	}
	return scrubber{strings.NewReplacer(pairs...)}
}

func (s scrubber) scrub(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}
