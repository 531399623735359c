// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/printable"
)

// asTable asks for what kubectl would print.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// page is a page of a list, as a table. It is meta.k8s.io/v1 Table, as far as it is shown.
type page struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Continue  string `json:"continue"`
		Remaining *int64 `json:"remainingItemCount"`
	} `json:"metadata"`
	Columns []struct {
		Name     string `json:"name"`
		Priority int32  `json:"priority"`
	} `json:"columnDefinitions"`
	Rows []struct {
		Cells  []any `json:"cells"`
		Object struct {
			Metadata struct {
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		} `json:"object"`
	} `json:"rows"`
}

// table reads a page of a list. Cells are what the API server prints of an object: it prints no value of a Secret.
func (a *access) table(ctx context.Context, kind *kubeapi.Kind, namespace string, query url.Values) (*page, error) {
	query.Set("includeObject", "None")
	if namespace == "" && kind.Namespaced {
		query.Set("includeObject", "Metadata")
	}
	raw, err := a.do(ctx, kubeapi.Request{Path: kind.Path(namespace, ""), Query: query, Accept: asTable})
	if err != nil {
		return nil, err
	}
	var p page
	if err := json.Unmarshal(raw, &p); err != nil || p.Kind != "Table" {
		return nil, errors.New("the API server prints no table of this kind: read single objects with k8s_get")
	}
	return &p, nil
}

// lines are the rows as text, the names of the columns first. wide are those too that kubectl shows with -o wide.
func (p *page) lines(wide, namespaces bool) []string {
	var head []string
	if namespaces {
		head = append(head, "NAMESPACE")
	}
	for _, column := range p.Columns {
		if wide || column.Priority == 0 {
			head = append(head, strings.ToUpper(cell(column.Name)))
		}
	}
	all := [][]string{head}
	for i := range p.Rows {
		var cells []string
		if namespaces {
			cells = append(cells, cell(p.Rows[i].Object.Metadata.Namespace))
		}
		all = append(all, append(cells, p.cells(i, wide)...))
	}
	return aligned(all)
}

// cells are those of a row.
func (p *page) cells(row int, wide bool) (cells []string) {
	for i, column := range p.Columns {
		if (wide || column.Priority == 0) && i < len(p.Rows[row].Cells) {
			cells = append(cells, cell(p.Rows[row].Cells[i]))
		}
	}
	return cells
}

// cell is a cell in one line.
func cell(value any) string {
	if value == nil {
		return "<none>"
	}
	if number, ok := value.(float64); ok && number == float64(int64(number)) {
		return fmt.Sprintf("%d", int64(number))
	}
	if said := printable.Line(fmt.Sprint(value)); said != "" {
		return said
	}
	return "<none>"
}

// maxAligned is how wide a cell is filled up to at most: what is wider moves its row alone.
const maxAligned = 60

// aligned are rows with their cells below each other, two spaces apart.
func aligned(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = min(maxAligned, max(widths[i], len([]rune(cell))))
		}
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", max(0, widths[i]-len([]rune(cell)))+2))
			}
		}
		lines = append(lines, b.String())
	}
	return lines
}
