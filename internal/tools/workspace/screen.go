// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// screen turns the output of a command into the text that a terminal shows in the end. It removes escape sequences, and
// keeps the last state of an overwritten line. NUL and invalid UTF-8 become U+FFFD. Pieces may end anywhere. The
// zero screen is empty. Terminal emulators differ: they wrap lines, and hide everything after an endless sequence.
type screen struct {
	done strings.Builder
	// line is the last one, which may still be overwritten; taken is how much of it Take has returned.
	line  []byte
	taken int
	// back is set after a carriage return: the next character overwrites the line. again is set if Take has returned a
	// part that was overwritten: the line begins again with the next Take.
	back, again bool
	// held is the beginning of a character.
	held  []byte
	state sequence
	// length is the number of characters of the sequence.
	length int
}

// sequence is the part of an escape sequence that the screen is in.
type sequence int

const (
	outside      sequence = iota
	behindEscape          // after ESC, or after an intermediate character
	inControl             // within a control sequence (CSI): parameters, then a final character
	inString              // within a string (OSC, DCS, SOS, PM, APC), which BEL or ST ends
)

const (
	// maxControl and maxString bound the characters of a sequence. A longer one is text.
	maxControl, maxString = 64, 4096
	// maxLine is how many bytes of a line can be overwritten.
	maxLine = 64 << 10
)

// Write adds a piece. It never fails.
func (s *screen) Write(piece []byte) (int, error) {
	rest := piece
	if len(s.held) > 0 {
		rest = append(s.held, piece...)
		s.held = nil
	}
	for len(rest) > 0 {
		if !utf8.FullRune(rest) {
			s.held = append([]byte(nil), rest...)
			break
		}
		r, size := utf8.DecodeRune(rest)
		s.put(r)
		rest = rest[size:]
	}
	return len(piece), nil
}

// Take returns what was added since the last time. It may end within a line.
func (s *screen) Take() string {
	if len(s.line) > s.taken {
		s.begin()
		s.done.Write(s.line[s.taken:])
		s.taken = len(s.line)
	}
	text := s.done.String()
	s.done.Reset()
	return text
}

// End returns what was added since the last Take. It omits an incomplete character if the bytes were cut.
func (s *screen) End(cut bool) string {
	if !cut {
		for range s.held {
			s.put(utf8.RuneError)
		}
	}
	s.held = nil
	return s.Take()
}

// put adds a character.
func (s *screen) put(r rune) {
	switch s.state {
	case outside:
		s.show(r)
	case behindEscape:
		s.escaped(r)
	case inControl:
		s.controlled(r)
	case inString:
		s.within(r)
	}
}

// enter begins a sequence, or continues with its next part.
func (s *screen) enter(state sequence) { s.state, s.length = state, 0 }

func (s *screen) show(r rune) {
	switch {
	case r == '\n':
		s.end()
	case r == '\r':
		s.back = true
	case r == '\b':
		s.eraseLast()
	case r == 0:
		s.add(utf8.RuneError)
	case r == '\t' || !unicode.Is(unicode.Cc, r):
		s.add(r)
	case r == 0x1b:
		s.enter(behindEscape)
	case r == 0x9b:
		s.enter(inControl)
	case strings.ContainsRune(stringsOfC1, r):
		s.enter(inString)
	}
}

// stringsOfC1 are the C1 characters DCS, SOS, OSC, PM and APC, which begin strings.
const stringsOfC1 = "\u0090\u0098\u009d\u009e\u009f"

// escaped handles a character after ESC.
func (s *screen) escaped(r rune) {
	switch {
	case r == '[':
		s.enter(inControl)
	case r == ']', r == 'P', r == 'X', r == '^', r == '_':
		s.enter(inString)
	case r >= ' ' && r <= '/' && s.length < maxControl:
		s.length++
	case r > '/' && r <= '~':
		s.enter(outside)
	default: // It is no sequence.
		s.enter(outside)
		s.show(r)
	}
}

// controlled handles a character of a control sequence.
func (s *screen) controlled(r rune) {
	s.length++
	switch {
	case r >= ' ' && r <= '?' && s.length <= maxControl:
	case r >= '@' && r <= '~':
		s.enter(outside)
	default:
		s.enter(outside)
		s.show(r)
	}
}

// within handles a character of a string. An endless string hides only the rest of its line.
func (s *screen) within(r rune) {
	s.length++
	switch {
	case r == 0x1b: // ESC \ ends it, and any other sequence cancels it.
		s.enter(behindEscape)
	case r == '\a', r == 0x9c:
		s.enter(outside)
	case r == '\n', s.length > maxString:
		s.enter(outside)
		s.show(r)
	}
}

// add adds a character to the line.
func (s *screen) add(r rune) {
	if s.back {
		s.back = false
		s.again = s.again || s.taken > 0
		s.line, s.taken = s.line[:0], 0
	}
	s.line = utf8.AppendRune(s.line, r)
	if len(s.line) > maxLine {
		s.flush()
	}
}

// eraseLast removes the last character of the line.
func (s *screen) eraseLast() {
	if s.back || len(s.line) == 0 {
		return
	}
	_, size := utf8.DecodeLastRune(s.line)
	s.line = s.line[:len(s.line)-size]
	s.taken = min(s.taken, len(s.line))
}

// begin begins the line again if Take has returned an overwritten part.
func (s *screen) begin() {
	if s.again {
		s.again = false
		s.done.WriteByte('\n')
	}
}

// flush completes the line for the next Take. It can no longer be overwritten.
func (s *screen) flush() {
	if len(s.line) > s.taken {
		s.begin()
	}
	s.done.Write(s.line[s.taken:])
	s.line, s.taken, s.again = s.line[:0], 0, false
}

// end ends the line.
func (s *screen) end() {
	s.flush()
	s.done.WriteByte('\n')
	s.back = false
}
