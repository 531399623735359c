// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package markdown writes the parts of generated pages.
package markdown

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Table writes a table with an empty line before it, or nothing if it has no rows.
func Table(w io.Writer, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat(" --- |", len(header)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// Cell is a text as a cell of a table.
func Cell(text string) string { return strings.NewReplacer("|", `\|`, "*", `\*`).Replace(text) }

// page is a page of the documentation as comments and texts of the sources name it.
var page = regexp.MustCompile(`\bdocs/([\w/-]+\.md)`)

// Prose is a comment of a source as a cell of a table or a paragraph of a page in docs/reference: in one line, with
// links to the pages that it names.
func Prose(text string) string {
	text = strings.NewReplacer("<", "&lt;", "_", `\_`).Replace(Cell(strings.Join(strings.Fields(text), " ")))
	return Links(text)
}

// Links makes links of the names of pages in a text of a page in docs/reference.
func Links(text string) string { return page.ReplaceAllString(text, "[$1](../$1)") }

// Code is a text in a code span.
func Code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }
