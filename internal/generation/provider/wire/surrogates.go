// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"regexp"
	"slices"
)

var (
	// lead is the first half of a character at the end of a text, trail is the second half at the beginning of one.
	lead  = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}"`)
	trail = regexp.MustCompile(`"\\u[dD][c-fC-F][0-9a-fA-F]{2}`)
)

// surrogates joins the halves of a character that a server has split over two events: Go's decoder makes two unknown
// characters of them.
type surrogates struct{ held []byte }

// join moves the first half of a character to its second half in the next event.
func (s *surrogates) join(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u`)) {
		return data
	}
	if at := trail.FindIndex(data); at != nil && s.held != nil {
		data = slices.Insert(data, at[0]+1, s.held...)
		s.held = nil
	}
	if at := lead.FindIndex(data); at != nil && !escaped(data, at[0]) {
		s.held = bytes.Clone(data[at[0] : at[1]-1])
		data = slices.Delete(data, at[0], at[1]-1)
	}
	return data
}

// escaped reports whether the backslash at the index is part of an escaped one.
func escaped(data []byte, at int) bool {
	before := 0
	for at > before && data[at-1-before] == '\\' {
		before++
	}
	return before%2 == 1
}
