// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import "strings"

// inBackground takes a trailing & off a command, and reports whether there was one: one that the shell would take for
// that, not a part of &&, of a quoted text or of a comment.
func inBackground(command string) (rest string, background bool) {
	trimmed := strings.TrimRight(command, " \t\r\n")
	rest, found := strings.CutSuffix(trimmed, "&")
	joined := rest != "" && strings.IndexByte("&|;<>", rest[len(rest)-1]) >= 0
	if !found || joined || !open(rest) {
		return command, false
	}
	return strings.TrimRight(rest, " \t\r\n"), true
}

// open reports whether what follows a shell's text is neither quoted nor in a comment.
func open(text string) bool {
	l := lexer{begins: true}
	for i := range len(text) {
		l.take(text[i])
	}
	return l.quote == 0 && !l.escaped
}

// lexer reads a shell's text as far as quotes and comments go.
type lexer struct {
	// quote is what the text is within: a quotation mark, a backquote, # for a comment, 0 for none of them.
	quote byte
	// escaped says that the next character stands for itself, begins that it can begin a word.
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
