// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"strings"
	"unicode/utf8"

	"parley.dev/parley/api/v1beta1"
)

// room is the remaining content of a ChatMessage, in bytes as the API server stores them: JSON with the escapes of
// encoding/json.
type room struct {
	bytes int
	parts int
	full  bool
	// sources is the remaining room for sources.
	sources struct{ bytes, parts int }
}

// Sources take at most one sourceShare-th of the room, so that texts remain.
const sourceShare = 4

// partOverhead is an upper limit of a part's JSON without its strings: names, and two times.
const partOverhead = 216

func newRoom() *room {
	r := &room{bytes: v1beta1.MaxContentBytes, parts: v1beta1.MaxParts}
	r.sources.bytes, r.sources.parts = r.bytes/sourceShare, r.parts/sourceShare
	return r
}

// text takes as many whole characters as fit. Once something did not fit, nothing more does.
func (r *room) text(s string) string {
	if r.full {
		return ""
	}
	for i, c := range s {
		n := encodedLen(c, s[i:])
		if n > r.bytes {
			r.full = true
			return s[:i]
		}
		r.bytes -= n
	}
	return s
}

// part takes the room of a part with its strings, if it fits.
func (r *room) part(p *v1beta1.MessagePart) bool {
	need := partOverhead
	if c := p.ToolCall; c != nil {
		need += encodedString(c.ID) + encodedString(c.ProviderID) + encodedString(c.Name) + encodedString(c.Input)
	}
	if t := p.ToolResult; t != nil {
		need += encodedString(t.ID) + encodedString(t.Name) + encodedString(t.Output)
	}
	if f := p.File; f != nil {
		need += encodedString(f.Name) + encodedString(f.MediaType) + len(f.Data)
	}
	if r.full || r.parts == 0 || need > r.bytes {
		r.full = true
		return false
	}
	r.bytes -= need
	r.parts--
	return true
}

// source takes the room of a source, if it fits. If not, later parts still can.
func (r *room) source(s *v1beta1.Source) bool {
	need := partOverhead + encodedString(s.ID) + encodedString(s.URL) + encodedString(s.Title)
	if r.full || min(r.parts, r.sources.parts) == 0 || need > min(r.bytes, r.sources.bytes) {
		return false
	}
	r.bytes, r.sources.bytes = r.bytes-need, r.sources.bytes-need
	r.parts--
	r.sources.parts--
	return true
}

// extra takes the room of an optional string, if it fits.
func (r *room) extra(s string) bool {
	n := encodedString(s)
	if n > r.bytes {
		return false
	}
	r.bytes -= n
	return true
}

func encodedString(s string) int {
	n := 0
	for i, c := range s {
		n += encodedLen(c, s[i:])
	}
	return n
}

// asciiLen is the length of each ASCII character in the JSON of encoding/json with its HTML escapes.
var asciiLen = func() (lengths [utf8.RuneSelf]int) {
	for c := range lengths {
		lengths[c] = 1
		if c < 0x20 || strings.ContainsRune("<>&", rune(c)) {
			lengths[c] = 6
		}
		if strings.ContainsRune("\"\\\n\r\t\b\f", rune(c)) {
			lengths[c] = 2
		}
	}
	return lengths
}()

// encodedLen is the length of a character in that JSON, with which rest begins.
func encodedLen(c rune, rest string) int {
	switch {
	case c < utf8.RuneSelf:
		return asciiLen[c]
	case c == '\u2028' || c == '\u2029':
		return 6
	case c == utf8.RuneError:
		if _, size := utf8.DecodeRuneInString(rest); size == 1 {
			return 6 // A broken byte is written as an escape.
		}
	}
	return utf8.RuneLen(c)
}
