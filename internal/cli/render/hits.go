// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"parley.dev/parley/client"
)

// HitTable prints messages as a search finds them.
type HitTable struct {
	to    io.Writer
	table *Table
}

// NewHitTable returns a table that prints its heading with the first hits.
func NewHitTable(to io.Writer) *HitTable { return &HitTable{to: to} }

// Print prints more hits. The columns are at least as wide as before.
func (t *HitTable) Print(hits []client.Hit) error {
	if len(hits) == 0 {
		return nil
	}
	if t.table == nil {
		t.table = new(newTable(t.to, "CHAT", "MESSAGE", "ROLE", "AGE", "TEXT"))
	}
	for i := range hits {
		h := &hits[i]
		t.table.Row(h.Chat, h.Message, string(h.Role), duration.HumanDuration(time.Since(h.CreatedAt)), h.Excerpt)
	}
	return t.table.Flush()
}
