// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"parley.dev/parley/internal/text/printable"
)

// mark begins every line that the plug-in writes among what is said in a conversation. It stands nowhere in what others
// say, so that nobody can imitate such a line: there it is spelled out,
// wherever it stands, because a terminal wraps long lines.
const mark = "▎"

// What terminals are told: the plug-in's own words are cyan, a model's reasoning is faint.
const (
	ownStyle   = "\033[36m"
	faintStyle = "\033[2m"
	noStyle    = "\033[0m"
)

// screen is standard output or standard error. Whatever is written to it is escaped, so that no verb can forget to.
type screen struct {
	to io.Writer
	// styled is true for a terminal whose user has not refused colours.
	styled bool
	text   printable.Escaper
}

func newScreen(to io.Writer) *screen {
	if s, ok := to.(*screen); ok {
		return s
	}
	file, ok := to.(*os.File)
	return &screen{to: to, styled: ok && term.IsTerminal(int(file.Fd())) && os.Getenv("NO_COLOR") == ""}
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	if _, err := io.WriteString(s.to, s.text.Add(string(p))); err != nil {
		return 0, fmt.Errorf("printing: %w", err)
	}
	return len(p), nil
}

// foreign shows a piece of what others say.
func (s *screen) foreign(text string) { s.put(unmarked(s.text.Add(text))) }

// prose shows a piece of a text in Markdown that others say.
func (s *screen) prose(text string, as *markdown) {
	if !s.styled {
		s.foreign(text)
		return
	}
	s.put(as.add(unmarked(s.text.Add(text))))
}

// faint shows a piece of what others say, less brightly.
func (s *screen) faint(text string) { s.put(s.style(faintStyle, unmarked(s.text.Add(text)))) }

// endForeign shows what is left of a text whose pieces were shown.
func (s *screen) endForeign() { s.put(unmarked(s.text.End())) }

// own shows the plug-in's own words, without what others say.
func (s *screen) own(words string) { s.put(s.style(ownStyle, printable.Escape(words))) }

// line shows a line of the plug-in's, which may quote others: in it they have one line.
func (s *screen) line(format string, args ...any) {
	s.put(s.style(ownStyle, mark+escapeLine(fmt.Sprintf(format, args...))) + "\n")
}

func (s *screen) put(text string) { _, _ = io.WriteString(s.to, text) }

func (s *screen) style(style, text string) string {
	if !s.styled || text == "" {
		return text
	}
	return style + text + noStyle
}

// escapeLine returns the text of others as part of a line of the plug-in.
func escapeLine(text string) string {
	return unmarked(printable.Escape(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(text)))
}

func unmarked(text string) string { return strings.ReplaceAll(text, mark, `\u258e`) }

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
	s := newScreen(to)
	if _, ok := errors.AsType[duringOutputError](err); ok {
		s.line("kubectl chat: %v", err)
		return
	}
	fmt.Fprintf(s, "kubectl chat: %v\n", err)
}
