// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"io"
	"strconv"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/cli/terminal"
)

// Spent is what something took and cost.
type Spent struct {
	// Of is the chat (with its namespace), model, ChatModelConfig or day.
	Of string `json:"of"`
	// Usage and Cost are what it took.
	Usage v1alpha1.TokenUsage `json:"usage"`
	Cost  []v1alpha1.Cost     `json:"cost,omitempty"`
}

// Add counts a call of a model.
func (s *Spent) Add(u *v1alpha1.TokenUsage, costs ...v1alpha1.Cost) {
	s.Usage, s.Cost = s.Usage.Add(*u), cost.Total(s.Cost, costs)
}

// PrintSpent prints a table with the sum of several below it.
func PrintSpent(out io.Writer, by string, all []Spent) error {
	table := newTable(out, strings.ToUpper(by), "INPUT", "CACHED", "OUTPUT", "TOTAL", "COST")
	row := func(of string, s *Spent) {
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		table.Row(of, number(s.Usage.InputTokens), number(s.Usage.CacheReadTokens), number(s.Usage.OutputTokens),
			number(s.Usage.TotalTokens), cmp.Or(costsOf(s.Cost), "<none>"))
	}
	sum := &Spent{}
	for i := range all {
		row(cmp.Or(terminal.EscapeLine(flat(all[i].Of)), "<unknown>"), &all[i])
		sum.Add(&all[i].Usage, all[i].Cost...)
	}
	if len(all) != 1 {
		row("SUM", sum)
	}
	return table.Flush()
}
