// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	xansi "github.com/charmbracelet/x/ansi"

	"parley.dev/parley/internal/cli/terminal"
)

// The styles: words of the plug-in are cyan, reasoning and details are faint, and what is selected is reversed.
var (
	ownStyle      = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	faintStyle    = lipgloss.NewStyle().Faint(true)
	selectedStyle = lipgloss.NewStyle().Reverse(true)
)

// wrap breaks text into lines of at most that width, between words where it can.
func wrap(text string, width int) []string { return strings.Split(xansi.Wrap(text, width, ""), "\n") }

// wrapExactly breaks text into lines of at most that width, and keeps all spaces.
func wrapExactly(text string, width int) []string {
	return strings.Split(xansi.Hardwrap(text, width, true), "\n")
}

// escapeUneven escapes what is wider in some terminals than in others, such as emojis that are joined. Otherwise what
// follows it may be beyond the edge of a terminal.
func escapeUneven(text string) string {
	var b strings.Builder
	for text != "" {
		cluster, width := xansi.FirstGraphemeCluster(text, xansi.GraphemeWidth)
		text = text[len(cluster):]
		if width != xansi.StringWidthWc(cluster) {
			cluster = strings.Trim(strconv.QuoteToASCII(cluster), `"`)
		}
		b.WriteString(cluster)
	}
	return b.String()
}

// fits reports whether each line fits a width in all terminals.
func fits(lines []string, width int) bool {
	return !slices.ContainsFunc(lines, func(line string) bool {
		return max(xansi.StringWidth(line), xansi.StringWidthWc(line)) > width
	})
}

// own wraps a line of the plug-in, which begins with its mark. The lines that it becomes begin with the mark and an
// ellipsis, so that text of others in it does not look like another line of the plug-in.
func own(line string, width int, wrap func(string, int) []string) (lines []string) {
	text := strings.TrimPrefix(line, terminal.Mark)
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	for i, part := range wrap(text, max(1, width-lipgloss.Width(terminal.Mark+indent)-2)) {
		if i > 0 {
			part = indent + "… " + part
		}
		lines = append(lines, ownStyle.Render(terminal.Mark+part))
	}
	return lines
}

// clip shortens a line of the plug-in to a width.
func clip(line string, width int) string { return xansi.Truncate(line, max(0, width), "…") }
