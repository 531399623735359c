// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "strings"

// inBackground removes a trailing & from a command, and reports whether there was one. A part of &&, of a quoted text or
// of a comment does not count.
func inBackground(command string) (rest string, background bool) {
	trimmed := strings.TrimRight(command, " \t\r\n")
	rest, found := strings.CutSuffix(trimmed, "&")
	joined := rest != "" && strings.IndexByte("&|;<>", rest[len(rest)-1]) >= 0
	if !found || joined || !isUnquoted(rest) {
		return command, false
	}
	return strings.TrimRight(rest, " \t\r\n"), true
}

// isUnquoted reports whether the next character of a shell's text is neither quoted nor in a comment.
func isUnquoted(text string) bool {
	l := lexer{begins: true}
	for i := range len(text) {
		l.take(text[i])
	}
	return l.quote == 0 && !l.escaped
}

// lexer reads quotes and comments of a shell's text.
type lexer struct {
	// quote is the current quotation mark or backquote, # in a comment, 0 outside of them.
	quote byte
	// escaped is set after a backslash, begins where a word can begin.
	escaped, begins bool
}

func (l *lexer) take(c byte) {
	switch {
	case l.quote == '#':
		if c == '\n' {
			l.quote = 0
		}
	case l.escaped:
		l.escaped = false
		l.begins = false
		return
	case c == '\\' && l.quote != '\'':
		l.escaped = true
	case l.quote == c:
		l.quote = 0
	case l.quote == 0 && l.quotes(c):
		l.quote = c
	}
	l.begins = l.quote == 0 && strings.IndexByte(" \t\r\n;&|()", c) >= 0
}

// quotes reports whether a character begins a quoted text or a comment.
func (l *lexer) quotes(c byte) bool { return strings.IndexByte("'\"`", c) >= 0 || c == '#' && l.begins }
