// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"io"
	"strings"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/clip"
)

// sheet is what a person reads: what is said as it comes, in lines of their own the words of the plug-in.
type sheet struct {
	out, errOut *terminal.Screen
	prose       terminal.Markdown
	// tools are those that were called, by the call's id: a client's results do not repeat them.
	tools map[string]string
	// commands are those that calls run in the workspace, by the call's id; live is the call whose output was shown as it
	// came.
	commands map[string]string
	live     string
	// midLine is true when the last line on the screen is not ended, and openCall names the call that it shows.
	midLine  bool
	openCall string
}

func newSheet(out, errOut io.Writer) *sheet {
	return &sheet{out: terminal.NewScreen(out), errOut: terminal.NewScreen(errOut), tools: map[string]string{},
		commands: map[string]string{}}
}

// part shows a piece of a reply, or of the work of a tool.
func (s *sheet) part(part *parts.Part) {
	switch part.Type {
	case parts.Text:
		s.write(part.Text)
	case parts.Reasoning:
		if s.out.Styled {
			s.begun(part.Text)
			s.out.Faint(part.Text)
		}
	case parts.ToolCall:
		s.call(part.ID, part.Name, part.Text)
	case parts.ToolOutput:
		s.output(part.ID, part.Text)
	case parts.ToolResult:
		s.result(part.ID, part.Name, part.Text)
	}
}

// call leaves the line open: if nothing comes in between, the result follows on it.
func (s *sheet) call(id, name, input string) {
	s.tools[id] = name
	s.endLine()
	if question := questionOf(name, input); question != "" {
		s.out.Line("[the advisor is asked:]")
		s.quote("  ", question)
		return
	}
	if command := commandOf(name, input); command != "" {
		s.command(id, command)
		return
	}
	s.out.Own(terminal.Mark + "[")
	s.out.Foreign(flat(name + " " + OneLine(subjectOf(name, input))))
	s.out.EndForeign()
	s.out.Own("]")
	s.midLine, s.openCall = true, id
}

func (s *sheet) result(id, name, output string) {
	name = cmp.Or(name, s.tools[id], id)
	if a, ok := adviceOf(name, output); ok {
		s.endLine()
		s.out.Line("[%s]", a.heading())
		s.quote("  ", a.Advice)
		return
	}
	if r, ok := ranOf(name, output); ok {
		s.ended(id, &r)
		return
	}
	diffs, words := editedOf(name, output)
	if open := s.openCall; open != id || s.commands[id] != "" {
		s.endLine()
		s.out.Own(terminal.Mark + "[")
		s.out.Foreign(flat(name))
		s.out.Own("]")
	}
	s.out.Own(" -> ")
	s.out.Foreign(OneLine(cmp.Or(words, output)))
	s.midLine = true
	s.endLine()
	if diffs != "" {
		s.lines(diffs)
	}
}

// note tells something about the conversation that is no part of it.
func (s *sheet) note(format string, args ...any) {
	s.endLine()
	s.errOut.Line("["+format+"]", args...)
}

// asked shows what somebody has asked.
func (s *sheet) asked(text string) {
	s.endLine()
	s.quote("> ", text)
}

// quote shows what somebody said within lines of the plug-in's.
func (s *sheet) quote(indent, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\r\n")) {
		s.out.Own(terminal.Mark + indent)
		s.out.Foreign(strings.TrimRight(line, "\r\n"))
		s.out.EndForeign()
		s.out.Put("\n")
	}
}

func (s *sheet) write(text string) {
	if text == "" {
		return
	}
	s.begun(text)
	s.out.Prose(text, &s.prose)
}

// begun notes that a piece of text is about to be shown, which belongs to no call.
func (s *sheet) begun(text string) {
	if s.openCall != "" {
		s.endLine()
	}
	s.midLine = !strings.HasSuffix(text, "\n")
}

func (s *sheet) endLine() {
	s.openCall = ""
	s.out.EndForeign()
	if s.midLine {
		s.out.Put("\n")
		s.midLine = false
	}
}

// command shows a command that is about to run. Its output follows as it comes.
func (s *sheet) command(id, command string) {
	first, rest, more := strings.Cut(command, "\n")
	s.quote("$ ", first)
	if more {
		s.quote("  ", rest)
	}
	s.commands[id] = clip.Ellipsis(first, maxToolRunes)
	s.openCall, s.live = id, ""
}

// output shows what the command of a call writes while it runs, unless something else was shown since.
func (s *sheet) output(id, text string) {
	if s.openCall != id || s.commands[id] == "" || text == "" {
		return
	}
	s.live = id
	for line := range strings.Lines(text) {
		if !s.midLine {
			s.out.Own(terminal.Mark + "  ")
		}
		s.out.Foreign(strings.TrimRight(line, "\r\n"))
		if s.midLine = !strings.HasSuffix(line, "\n"); !s.midLine {
			s.out.EndForeign()
			s.out.Put("\n")
		}
	}
}

// ended shows what came of a command: its output, unless that was shown while it ran, and how it ended.
func (s *sheet) ended(id string, r *ran) {
	open, live := s.openCall == id, s.live == id
	s.endLine()
	if !open {
		s.quote("$ ", s.commands[id])
	}
	if !live {
		s.lines(*r.Output)
	}
	s.out.Line("[%s]", r.ending())
}

// lines shows the last lines of a text.
func (s *sheet) lines(text string) {
	all := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if left := len(all) - maxWorkLines; left > 0 {
		s.out.Line("  [%s more]", Plural(left, "line"))
		all = all[left:]
	}
	s.quote("  ", strings.Join(all, "\n"))
}
