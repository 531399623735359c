// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/clip"
)

// sheet is what a person reads: messages as they come, and lines of the plug-in between them.
type sheet struct {
	out, errOut *terminal.Screen
	prose       terminal.Markdown
	// tools maps the ids of calls to their tools, which a client's results do not repeat.
	tools map[string]string
	// commands maps the ids of calls to the commands that they run. live is the call whose output was shown as it came.
	commands map[string]string
	live     string
	// midLine is true while the last line on the screen is not ended, and openCall is the call that it shows.
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
			s.beginText(part.Text)
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

// call shows a call. The line stays open for the result, if that comes next.
func (s *sheet) call(id, name, input string) {
	s.tools[id] = name
	s.endLine()
	question, command := textArgument(input, "question"), textArgument(input, "command")
	switch {
	case name == v1beta1.ToolAdvisor && question != "":
		s.out.Line("[the advisor is asked:]")
		s.quote("  ", question)
		return
	case name == string(v1beta1.BuiltInExecute) && command != "":
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
	switch name {
	case v1beta1.ToolAdvisor:
		if a, ok := parse[advice](output); ok && a.heading() != "" {
			s.endLine()
			s.out.Line("[%s]", a.heading())
			s.quote("  ", a.Advice)
			return
		}
	case string(v1beta1.BuiltInExecute):
		if r, ok := parse[commandResult](output); ok && r.Output != nil {
			s.commandEnd(id, &r)
			return
		}
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

func (s *sheet) note(format string, args ...any) {
	s.endLine()
	s.errOut.Line("["+format+"]", args...)
}

func (s *sheet) question(text string) {
	s.endLine()
	s.quote("> ", text)
}

// quote shows the text of others in lines of the plug-in.
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
	s.beginText(text)
	s.out.Prose(text, &s.prose)
}

// beginText ends the line of a call before a piece of text.
func (s *sheet) beginText(text string) {
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

// command shows a command. Its output follows as it comes.
func (s *sheet) command(id, command string) {
	first, rest, more := strings.Cut(command, "\n")
	s.quote("$ ", first)
	if more {
		s.quote("  ", rest)
	}
	s.commands[id] = clip.Ellipsis(first, maxToolRunes)
	s.openCall, s.live = id, ""
}

// output shows the output of the command of a call while it runs, unless something else was shown since.
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

// commandEnd shows how a command ended, and its output, unless that was shown while it ran.
func (s *sheet) commandEnd(id string, r *commandResult) {
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

// maxWorkLines is how many of the last lines of a command's output, or of a diff, are shown.
const maxWorkLines = 40

// parse reads JSON of a tool; false if it is of another form.
func parse[T any](raw string) (v T, ok bool) {
	err := json.Unmarshal([]byte(raw), &v)
	return v, err == nil
}

// textArgument returns an argument of a call that is a text; else an empty one.
func textArgument(input, name string) string {
	arguments, _ := parse[map[string]any](input)
	text, _ := arguments[name].(string)
	return strings.TrimSpace(text)
}

// subjectOf is what a call is about, in short: the files of one that reads or writes files, else all its input.
func subjectOf(name, input string) string {
	switch v1beta1.BuiltInTool(name) {
	case v1beta1.BuiltInReadFile, v1beta1.BuiltInWriteFile, v1beta1.BuiltInEditFiles, v1beta1.BuiltInAttachFile:
	default:
		return input
	}
	type file struct{ Path string }
	arguments, ok := parse[struct {
		file

		Edits []file
	}](input)
	if arguments.Path != "" {
		arguments.Edits = append(arguments.Edits, arguments.file)
	}
	var paths []string
	for _, edit := range slices.Compact(arguments.Edits) {
		paths = append(paths, edit.Path)
	}
	if !ok || len(paths) == 0 {
		return input
	}
	return strings.Join(paths, ", ")
}

// commandResult is the result of a command, as the model reads it.
type commandResult struct {
	Output     *string `json:"output"`
	ExitCode   *int    `json:"exit_code"`
	Signal     string  `json:"signal"`
	Error      string  `json:"error"`
	DurationMS int64   `json:"wall_duration_ms"`
	Background string  `json:"background_process_id"`
}

// ending describes how the command ended, if it has.
func (r *commandResult) ending() string {
	took := (time.Duration(r.DurationMS) * time.Millisecond).String()
	switch {
	case r.Background != "":
		return "it runs on as " + r.Background
	case r.Signal != "":
		return r.Signal + " after " + took
	case r.ExitCode != nil:
		return fmt.Sprintf("exit code %d after %s", *r.ExitCode, took)
	case r.Error != "":
		return OneLine(r.Error)
	}
	return "no exit code after " + took
}

// editedOf returns what a call has changed in files, as diffs, and what it has read or written, in words; both are
// empty for other tools.
func editedOf(name, output string) (diffs, words string) {
	result, ok := parse[struct {
		Files      []struct{ Diff string }
		Size       *int64
		LinesRead  *int64 `json:"lines_read"`
		TotalLines int64  `json:"total_lines"`
	}](output)
	switch tool := v1beta1.BuiltInTool(name); {
	case !ok:
	case tool == v1beta1.BuiltInEditFiles:
		for _, file := range result.Files {
			diffs += strings.TrimRight(file.Diff, "\n") + "\n"
		}
		return diffs, Plural(len(result.Files), "file")
	case (tool == v1beta1.BuiltInWriteFile || tool == v1beta1.BuiltInAttachFile) && result.Size != nil:
		return "", fmt.Sprintf("%d bytes", *result.Size)
	case tool == v1beta1.BuiltInReadFile && result.LinesRead != nil:
		return "", fmt.Sprintf("%d of %s", *result.LinesRead, Plural(int(result.TotalLines), "line"))
	}
	return "", ""
}

// advice is a result of the advisor, as the model reads it.
type advice struct {
	Type          string `json:"type"`
	Advice        string `json:"advice"`
	Error         string `json:"error"`
	Model         string `json:"advisor_model"`
	RemainingUses int32  `json:"remaining_uses"`
}

// heading describes the result; empty for an unknown one.
func (a *advice) heading() string {
	switch {
	case a.Type == "limit_reached":
		return "the advisor was not asked: the turn has had all the advice that it may have"
	case a.Type == "error":
		return "the advisor gave no advice: " + OneLine(a.Error)
	case a.Type != "advice":
		return ""
	case a.Model == "":
		return fmt.Sprintf("advice, %d more may be asked for in this turn:", a.RemainingUses)
	}
	return fmt.Sprintf("advice of %s, %d more may be asked for in this turn:", a.Model, a.RemainingUses)
}
