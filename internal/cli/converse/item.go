// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"strings"

	"charm.land/lipgloss/v2"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// item is a part of the conversation that is rendered on its own: a text, a call, or lines of the plug-in.
type item struct {
	// key identifies what can be selected; empty for the rest.
	key string
	// prose is a text in Markdown, and own holds lines as the plug-in prints them, of a note once it is shown.
	prose string
	own   []string
	note  *stream.Note
	// fold is what folds to one line.
	fold *fold
	// pending is a call that waits for a decision, input or a result. It is open in select mode.
	pending *v1beta1.PendingToolCall
	// queued is the name of a message that waits in the queue.
	queued string

	// rendered holds the lines for a width and a state.
	rendered []string
	width    int
	open     bool
}

// fold is a call, or reasoning. Its texts are of others.
type fold struct {
	head, result string
	detail       func() []string
}

// lines returns the lines of the item. They are rendered once for a width and a state.
func (it *item) lines(width int, open bool) []string {
	if it.rendered == nil || it.width != width || it.open != open {
		it.rendered, it.width, it.open = it.render(width, open), width, open
	}
	return it.rendered
}

func (it *item) render(width int, open bool) (lines []string) {
	if it.pending != nil {
		return renderPending(it.pending, width, open)
	}
	width = max(10, width)
	switch {
	case it.prose != "":
		return append(prose(it.prose, width), "")
	case it.fold != nil:
		return it.fold.render(width, open)
	}
	if it.note != nil {
		it.own = render.Lines(it.note)
	}
	for _, line := range it.own {
		line = strings.ReplaceAll(line, "\t", "    ")
		if strings.HasPrefix(line, terminal.Mark) {
			lines = append(lines, own(line, width, wrap)...)
		} else { // It is text of others, as in an earlier conversation.
			lines = append(lines, wrap(line, width)...)
		}
	}
	return lines
}

func (f *fold) render(width int, open bool) []string {
	sign := "▸ "
	if open {
		sign = "▾ "
	}
	line, result := terminal.Mark+sign+terminal.EscapeLine(f.head), ""
	if f.result != "" {
		result = " -> " + terminal.EscapeLine(f.result)
	}
	line = clip(line, max(width-lipgloss.Width(result), width/2)) // The result matters more than what was called.
	lines := []string{ownStyle.Render(clip(line+result, width))}
	if !open {
		return lines
	}
	for _, text := range f.detail() {
		for _, part := range wrapExactly(escape(text), max(1, width-3)) {
			lines = append(lines, ownStyle.Render(terminal.Mark+"| ")+faintStyle.Render(part))
		}
	}
	return lines
}

// hints are the keys for what a pending call needs.
var hints = map[render.Need]string{
	render.NeedsApproval: "[needs approval: a approves, d denies]",
	render.NeedsInput:    "[asks for input: r answers, d denies]",
	render.NeedsResult:   "[needs a result: kubectl chat answer]",
}

// tabFirst makes the hints those for a person who types.
var tabFirst = strings.NewReplacer(": a approves", ": Tab, then a approves", ": r answers", ": Tab, then r answers")

// renderPending shows all of a call, and never less: it is what people decide about.
func renderPending(call *v1beta1.PendingToolCall, width int, selecting bool) (lines []string) {
	for _, line := range render.DescribeCall(call) {
		lines = append(lines, own(terminal.Mark+"  "+escapeUneven(terminal.EscapeLine(line)), width, wrapExactly)...)
	}
	hint := hints[render.NeedOf(call)]
	if cause := render.CauseOf(call); render.NeedOf(call) == render.NeedsApproval && cause != "" {
		hint = strings.Replace(hint, "approval", "approval ("+cause+")", 1)
	}
	if !selecting {
		hint = tabFirst.Replace(hint)
	}
	return append(lines, own(terminal.Mark+"  "+hint, width, wrap)...)
}
