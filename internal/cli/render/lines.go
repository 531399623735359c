// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// Lines returns what a Printer prints of one update for a person, without styles.
func Lines(u client.Update) []string {
	var b strings.Builder
	screen := &terminal.Screen{To: &b}
	p := NewPrinter(screen, screen, false, Hint{})
	p.Show(u, true)
	p.EndLine()
	if b.Len() == 0 {
		return nil
	}
	return linesOf(b.String())
}

// CallLine describes a call in one line. It is text of others.
func CallLine(name, input string) string {
	command := textArgument(input, "command")
	if name == string(v1beta1.BuiltInExecute) && command != "" {
		return "$ " + OneLine(command)
	}
	return flat(name + " " + OneLine(cmp.Or(textArgument(input, "question"), subjectOf(name, input))))
}

// ResultLine describes the result of a call in one line. It is text of others.
func ResultLine(name, output string) string {
	switch name {
	case v1beta1.ToolAdvisor:
		if a, ok := parse[advice](output); ok && a.heading() != "" {
			return strings.TrimSuffix(a.heading(), ":")
		}
	case string(v1beta1.BuiltInExecute):
		if r, ok := parse[commandResult](output); ok && r.Output != nil {
			return r.ending()
		}
	}
	_, words := editedOf(name, output)
	return OneLine(cmp.Or(words, output))
}

// CallDetail returns the lines of the whole input of a call, or of its whole result, for people who read it: texts have
// their line breaks. They are text of others. People who decide about a call are shown inputLines, which is exact.
func CallDetail(text string) (lines []string) {
	var pretty bytes.Buffer
	if json.Indent(&pretty, []byte(text), "", "  ") != nil {
		return inputLines(text)
	}
	for line := range strings.SplitSeq(pretty.String(), "\n") {
		lines = append(lines, textLines(line)...)
	}
	return lines
}

// textMember matches a line of indented JSON with a text: its indentation, its name if it has one, and the text.
var textMember = regexp.MustCompile(`^( *)("(?:[^"\\]|\\.)*":)? ?("(?:[^"\\]|\\.)*"),?$`)

// textLines returns a line of indented JSON, or the lines of the text in it below its name.
func textLines(line string) []string {
	var text string
	m := textMember.FindStringSubmatch(line)
	if m == nil || json.Unmarshal([]byte(m[3]), &text) != nil || !strings.Contains(text, "\n") {
		return []string{line}
	}
	lines := []string{m[1] + cmp.Or(m[2], "-")}
	for _, one := range linesOf(printable.Escape(text)) {
		lines = append(lines, m[1]+"    "+one)
	}
	return lines
}

// DecisionLine describes a decision about a call; empty for nil.
func DecisionLine(d *v1beta1.ToolDecision) string {
	if d == nil || d.Comment == "" {
		return decisionOf(d)
	}
	return decisionOf(d) + ": " + d.Comment
}

// StatusLine describes what a chat waits for, in one line of text of others.
func StatusLine(now *stream.Status) string {
	switch {
	case now.Wait != nil:
		return flat(now.Wait.Reason + ": " + now.Wait.Message)
	case now.Ready == metav1.ConditionTrue:
		return "Ready"
	}
	return flat(cmp.Or(string(now.Phase), now.Reason))
}

// ChatLine describes a chat in one line: its name, what it waits for, and its title. It is text of others.
func ChatLine(chat *v1beta1.Chat) string {
	return chat.Name + "  " + flat(cmp.Or(waitOf(chat), reasonOf(chat))+" "+chat.Status.Title)
}

// CostLine adds the costs of currencies up in one line; empty if there are none.
func CostLine(costs []v1beta1.Cost) string { return clip.Ellipsis(costsOf(costs), maxToolRunes) }
