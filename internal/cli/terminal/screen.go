// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal writes to a terminal. Text of others is escaped and styled so that it neither
// controls the terminal nor looks like lines of the plug-in.
package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"parley.dev/parley/internal/text/printable"
)

// Mark begins every line of the plug-in within a conversation. In text of others it is escaped everywhere, because a
// terminal wraps long lines, so no one can imitate such a line.
const Mark = "▎"

// The styles: words of the plug-in are cyan, a model's reasoning is faint.
const (
	OwnStyle   = "\033[36m"
	FaintStyle = "\033[2m"
	NoStyle    = "\033[0m"
)

// changeStyles are the styles of lines of a diff, by their first characters: green, red, and as words of the plug-in.
var changeStyles = map[byte]string{'+': "\033[32m", '-': "\033[31m", '@': OwnStyle}

// Screen is standard output or standard error. Everything that is written to it is escaped.
type Screen struct {
	To io.Writer
	// Styled is true for a terminal, without $NO_COLOR.
	Styled bool
	text   printable.Escaper
	failed error
}

// NewScreen returns a Screen that writes there.
func NewScreen(to io.Writer) *Screen {
	if s, ok := to.(*Screen); ok {
		return s
	}
	file, ok := to.(*os.File)
	return &Screen{To: to, Styled: ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""}
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	if err := s.write(s.text.Add(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (s *Screen) write(text string) error {
	_, err := io.WriteString(s.To, text)
	if err != nil {
		err = fmt.Errorf("printing: %w", err)
		s.failed = cmp.Or(s.failed, err)
	}
	return err
}

// Err returns the first error of all that was shown.
func (s *Screen) Err() error { return s.failed }

// Foreign shows a piece of text of others.
func (s *Screen) Foreign(text string) { s.Put(Unmarked(s.text.Add(text))) }

// Prose shows a piece of text of others in Markdown.
func (s *Screen) Prose(text string, as *Markdown) {
	if !s.Styled {
		s.Foreign(text)
		return
	}
	s.Put(as.add(Unmarked(s.text.Add(text))))
}

// Faint shows a piece of text of others, less brightly.
func (s *Screen) Faint(text string) { s.Put(s.style(FaintStyle, Unmarked(s.text.Add(text)))) }

// Diff shows a diff of others.
func (s *Screen) Diff(diff string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		s.Put(s.style(changeStyles[(line + " ")[0]], Unmarked(printable.Escape(line))) + "\n")
	}
}

// EndForeign shows the rest of a text after its pieces.
func (s *Screen) EndForeign() { s.Put(Unmarked(s.text.End())) }

// Own shows words of the plug-in.
func (s *Screen) Own(words string) { s.Put(s.style(OwnStyle, printable.Escape(words))) }

// Line shows a line of the plug-in, which may quote text of others.
func (s *Screen) Line(format string, args ...any) {
	s.Put(s.style(OwnStyle, Mark+EscapeLine(fmt.Sprintf(format, args...))) + "\n")
}

// Put shows text as it is.
func (s *Screen) Put(text string) { _ = s.write(text) } // Err has the error.

func (s *Screen) style(style, text string) string {
	if !s.Styled || style == "" || text == "" {
		return text
	}
	return style + text + NoStyle
}

// EscapeLine escapes text of others for a line of the plug-in.
func EscapeLine(text string) string {
	return Unmarked(printable.Escape(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text)))
}

// Unmarked escapes the mark in text of others.
func Unmarked(text string) string { return strings.ReplaceAll(text, Mark, `\u258e`) }

type duringOutputError struct{ error }

func (e duringOutputError) Unwrap() error { return e.error }

// DuringOutput marks an error as one that is printed below a conversation.
func DuringOutput(err error) error {
	if err == nil {
		return nil
	}
	return duringOutputError{err}
}

// Complain prints the error of a verb, which may quote text of others.
func Complain(to io.Writer, err error) {
	s := NewScreen(to)
	if _, ok := errors.AsType[duringOutputError](err); ok {
		s.Line("kubectl chat: %v", err)
		return
	}
	fmt.Fprintf(s, "kubectl chat: %v\n", err)
}
