// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/printers"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/text/clip"
)

// maxToolRunes is how much of a tool's input or output is shown: it is to be recognised, not read.
const maxToolRunes = 200

// OneLine is a text to be recognised, and not read.
func OneLine(s string) string { return clip.Ellipsis(flat(s), maxToolRunes) }

// flat is a text in one line.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// Plural is a number of things.
func Plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// costsOf is money of several currencies.
func costsOf(costs []v1alpha1.Cost) string {
	said := make([]string, 0, len(costs))
	for _, c := range costs {
		said = append(said, cost.String(c.MicroUnits, c.Currency))
	}
	return strings.Join(said, ", ")
}

// clock is a time of today, or one with its date.
func clock(at time.Time) string {
	if at = at.Local(); at.Format(time.DateOnly) == time.Now().Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

// Table prints rows in columns, which stay as wide as they were.
type Table struct {
	to interface {
		io.Writer
		Flush() error
	}
}

// newTable is a table with a heading, if there are words for it.
func newTable(to io.Writer, heading ...string) Table {
	t := Table{printers.GetNewTabWriter(to)}
	if len(heading) > 0 {
		t.Row(heading...)
	}
	return t
}

// Row adds a row.
func (t Table) Row(cells ...string) { fmt.Fprintln(t.to, strings.Join(cells, "\t")) }

// Flush prints the rows.
func (t Table) Flush() error {
	if err := t.to.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
