// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bytes"
	"context"
	"regexp"
	"strings"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// shownMatch is how much of a line with a match is shown, and beforeMatch how much of it before the match.
	shownMatch, beforeMatch = 500, 100
	// linesAtOnce are searched between two checks of the context.
	linesAtOnce = 1024
)

// contentSearch finds lines that match.
type contentSearch struct {
	re *regexp.Regexp
	// prefix of every match.
	prefix []byte
	buffer bytes.Buffer
}

// lines adds the lines of a text that match.
func (s *search) lines(ctx context.Context, name string, text []byte) error {
	number, counted := int64(1), 0
	for from, looked := 0, 1; from < len(text); looked++ {
		if looked%linesAtOnce == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		start, end, ok := s.content.candidate(text, from)
		if !ok {
			return nil
		}
		if at := s.content.re.FindIndex(lineOf(text, start)); at != nil {
			number += int64(bytes.Count(text[counted:start], []byte{'\n'}))
			counted = start
			if err := s.add(s.match(name, number, text, start, at[0])); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

// candidate is the next line that may match, from an offset on at which a line begins: its first byte, and the first
// one after it.
func (c *contentSearch) candidate(text []byte, from int) (start, end int, ok bool) {
	at := bytes.Index(text[from:], c.prefix)
	if at < 0 {
		return 0, 0, false
	}
	start = from + bytes.LastIndexByte(text[from:from+at], '\n') + 1
	return start, nextLine(text, from+at), true
}

// nextLine is the beginning of the line after an offset.
func nextLine(text []byte, from int) int {
	if at := bytes.IndexByte(text[from:], '\n'); at >= 0 {
		return from + at + 1
	}
	return len(text)
}

// lineOf is the line that begins at an offset, without its ending.
func lineOf(text []byte, start int) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(text[start:nextLine(text, start)], []byte{'\n'}), []byte{'\r'})
}

// match is the line that begins at an offset, with those around it.
func (s *search) match(name string, number int64, text []byte, start, at int) protocol.Match {
	m := protocol.Match{Path: name, Line: number, Text: shown(lineOf(text, start), at)}
	for before := start; before > 0 && len(m.Before) < s.context; {
		before = bytes.LastIndexByte(text[:before-1], '\n') + 1
		m.Before = append([]string{shown(lineOf(text, before), 0)}, m.Before...)
	}
	for after := nextLine(text, start); after < len(text) && len(m.After) < s.context; after = nextLine(text, after) {
		m.After = append(m.After, shown(lineOf(text, after), 0))
	}
	return m
}

// shown cuts a long line to the part around an offset.
func shown(line []byte, at int) string {
	begins, ends := "", ""
	if len(line) > shownMatch && at > beforeMatch {
		line, begins = line[min(at-beforeMatch, len(line)-shownMatch):], "…"
		line = bytes.TrimLeftFunc(line, func(r rune) bool { return r == '\ufffd' })
	}
	if len(line) > shownMatch {
		line, ends = []byte(clip.Bytes(string(line[:shownMatch+1]), shownMatch)), "…"
	}
	return begins + strings.ToValidUTF8(string(line), "\ufffd") + ends
}
