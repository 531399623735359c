// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import "strings"

// The styles of Markdown.
const (
	BoldStyle = "\033[1m"
	codeStyle = "\033[33m"
)

// Markdown styles a stream of Markdown: headings and strong text are bold, code is coloured. All characters stay.
type Markdown struct {
	// fenced is true within a block of code, and code, strong and heading, within a line.
	fenced, code, strong, heading bool
	// run counts repetitions of the last character, and inLine the characters of the line.
	run    int
	last   rune
	inLine int
	// begins is true while the line has backticks or hashes alone.
	begins bool
}

// add styles a piece of the text. Each piece ends without a style.
func (m *Markdown) add(piece string) string {
	var b strings.Builder
	style := ""
	for _, r := range piece {
		m.before(r)
		if now := m.style(r); now != style {
			if style != "" {
				b.WriteString(NoStyle)
			}
			b.WriteString(now)
			style = now
		}
		b.WriteRune(r)
		m.after(r)
	}
	if style != "" {
		b.WriteString(NoStyle)
	}
	return b.String()
}

// before ends a run of backticks or hashes.
func (m *Markdown) before(r rune) {
	if r == m.last {
		return
	}
	switch {
	case m.last == '`':
		m.endTicks()
	case m.last == '#' && r == ' ' && m.begins && m.run <= 6:
		m.heading = !m.fenced
	}
	m.run = 0
}

// endTicks ends a run of backticks.
func (m *Markdown) endTicks() {
	if m.begins && m.run >= 3 {
		m.fenced = !m.fenced
	} else if !m.fenced {
		m.code = !m.code
	}
}

// after counts a character.
func (m *Markdown) after(r rune) {
	if r == '\n' {
		*m = Markdown{fenced: m.fenced, last: r, begins: true}
		return
	}
	if m.inLine == 0 {
		m.begins = true
	}
	m.begins = m.begins && (r == '`' || r == '#')
	m.last, m.run, m.inLine = r, m.run+1, m.inLine+1
	if r == '*' && m.run == 2 && !m.fenced && !m.code {
		m.strong = !m.strong
	}
}

// style returns the style of the next character.
func (m *Markdown) style(r rune) string {
	switch {
	case r == '\n':
		return ""
	case m.fenced || m.code || r == '`':
		return codeStyle
	case m.heading || m.strong || r == '#' && m.inLine == m.run:
		return BoldStyle
	}
	return ""
}
