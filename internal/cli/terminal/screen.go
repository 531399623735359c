// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal shows text where a person reads, and reads what they type. Whatever others say is escaped and styled
// so that it neither controls a terminal nor looks like the words of the plug-in.
package terminal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"parley.dev/parley/internal/text/printable"
)

// Mark begins every line that the plug-in writes among what is said in a conversation. It stands nowhere in what others
// say, so that nobody can imitate such a line: there it is spelled out,
// wherever it stands, because a terminal wraps long lines.
const Mark = "▎"

// What terminals are told: the plug-in's own words are cyan, a model's reasoning is faint.
const (
	OwnStyle   = "\033[36m"
	FaintStyle = "\033[2m"
	NoStyle    = "\033[0m"
)

// Screen is standard output or standard error. Whatever is written to it is escaped, so that no verb can forget to.
type Screen struct {
	To io.Writer
	// styled is true for a terminal whose user has not refused colours.
	Styled bool
	text   printable.Escaper
}

// NewScreen is what shows text there: that itself if it is one.
func NewScreen(to io.Writer) *Screen {
	if s, ok := to.(*Screen); ok {
		return s
	}
	file, ok := to.(*os.File)
	return &Screen{To: to, Styled: ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""}
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.To, s.text.Add(string(p))); err != nil {
		return 0, fmt.Errorf("printing: %w", err)
	}
	return len(p), nil
}

// Foreign shows a piece of what others say.
func (s *Screen) Foreign(text string) { s.Put(Unmarked(s.text.Add(text))) }

// Prose shows a piece of a text in Markdown that others say.
func (s *Screen) Prose(text string, as *Markdown) {
	if !s.Styled {
		s.Foreign(text)
		return
	}
	s.Put(as.add(Unmarked(s.text.Add(text))))
}

// Faint shows a piece of what others say, less brightly.
func (s *Screen) Faint(text string) { s.Put(s.style(FaintStyle, Unmarked(s.text.Add(text)))) }

// EndForeign shows what is left of a text whose pieces were shown.
func (s *Screen) EndForeign() { s.Put(Unmarked(s.text.End())) }

// Own shows the plug-in's own words, without what others say.
func (s *Screen) Own(words string) { s.Put(s.style(OwnStyle, printable.Escape(words))) }

// Line shows a line of the plug-in's, which may quote others: in it they have one line.
func (s *Screen) Line(format string, args ...any) {
	s.Put(s.style(OwnStyle, Mark+EscapeLine(fmt.Sprintf(format, args...))) + "\n")
}

// Put shows text of the plug-in as it is.
func (s *Screen) Put(text string) { _, _ = io.WriteString(s.To, text) }

func (s *Screen) style(style, text string) string {
	if !s.Styled || text == "" {
		return text
	}
	return style + text + NoStyle
}

// EscapeLine returns the text of others as part of a line of the plug-in.
func EscapeLine(text string) string {
	return Unmarked(printable.Escape(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text)))
}

// Unmarked is the text of others without the mark of the plug-in.
func Unmarked(text string) string { return strings.ReplaceAll(text, Mark, `\u258e`) }

// duringOutputError is an error that ends what was shown of a conversation.
type duringOutputError struct{ error }

// Unwrap returns the error itself.
func (e duringOutputError) Unwrap() error { return e.error }

// DuringOutput marks an error as one that is told below what others say.
func DuringOutput(err error) error {
	if err == nil {
		return nil
	}
	return duringOutputError{err}
}

// Complain tells a person of the error that a verb ended with. An error may quote anybody.
func Complain(to io.Writer, err error) {
	s := NewScreen(to)
	if _, ok := errors.AsType[duringOutputError](err); ok {
		s.Line("kubectl chat: %v", err)
		return
	}
	fmt.Fprintf(s, "kubectl chat: %v\n", err)
}

// Agreed asks a question that is answered with y, and otherwise with no.
func Agreed(in io.Reader, out io.Writer, format string, args ...any) bool {
	fmt.Fprintf(out, format+" [y/N] ", args...)
	line, err := bufio.NewReader(io.LimitReader(in, 1<<10)).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// OnTerminal reports whether a person types or reads there.
func OnTerminal(stream any) bool {
	file, ok := FileOf(stream)
	return ok && term.IsTerminal(int(file.Fd()))
}

// FileOf is the file that is read, or shown on.
func FileOf(stream any) (*os.File, bool) {
	if shown, ok := stream.(*Screen); ok {
		stream = shown.To
	}
	file, ok := stream.(*os.File)
	return file, ok
}
