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
	"unicode/utf8"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

const (
	// defaultListed is how many objects are listed, maxListed the most.
	defaultListed, maxListed = 50, 500
	// maxSelector and maxContinue are characters.
	maxSelector, maxContinue = 1024, 4096
	// maxAligned is the maximum width to which cells are aligned. A wider cell moves its row alone.
	maxAligned = 60
)

type listArguments struct {
	Resource  string `json:"resource"`
	Namespace string `json:"namespace"`
	All       bool   `json:"all_namespaces"`
	Labels    string `json:"label_selector"`
	Fields    string `json:"field_selector"`
	Wide      bool   `json:"wide"`
	Limit     int    `json:"limit"`
	Continue  string `json:"continue"`
}

type listResult struct {
	Table     string `json:"table" doc:"A line for each object, below the names of the columns."`
	Count     int    `json:"count" doc:"How many objects are shown."`
	LeftOut   int    `json:"left_out,omitempty" doc:"How many of the page do not fit: ask for a smaller limit."`
	Continue  string `json:"continue,omitempty" doc:"For the next page. Not there if some of this one are left out."`
	Remaining *int64 `json:"remaining,omitempty" doc:"How many more there are, where the API server reports it."`
}

var listDefinition = tools.Definition{
	Name:        string(v1beta1.BuiltInK8sList),
	Description: "Lists objects of the Kubernetes cluster as kubectl get prints them, a page at a time.",
	InputSchema: arguments.Object(map[string]any{
		"resource": resourceArgument, "namespace": namespaceArgument,
		"all_namespaces": arguments.Boolean("Whether to list the objects of all namespaces."),
		"label_selector": arguments.Text(1, maxSelector, "Only objects with these labels, such as app=web,tier!=db."),
		"field_selector": arguments.Text(1, maxSelector, "Only objects with these fields, such as status.phase=Running."),
		"wide":           arguments.Boolean("Whether to show the columns that kubectl shows with -o wide."),
		"limit":          arguments.Integer(1, maxListed, defaultListed, "How many to list."),
		"continue":       arguments.Text(1, maxContinue, "What an earlier page says, to have the next one."),
	}, "resource"),
	Traits: reading,
	Reference: tools.Reference{Offered: offered, Result: listResult{}, Errors: []string{
		"The list has changed so much since the page before that it cannot be gone on with: list it again."},
		Limits: []string{"Each page shows what the API server prints of its objects, which of Secrets is no value."}},
}

func list(ctx context.Context, a *access, args listArguments) (string, error) {
	t, err := a.find(ctx, objectArguments{Resource: args.Resource, Namespace: args.Namespace})
	if err != nil {
		return "", err
	}
	if args.All {
		t.namespace = ""
	}
	found, err := a.table(ctx, t.kind, t.namespace, query(map[string]string{"limit": fmt.Sprint(args.Limit),
		"labelSelector": args.Labels, "fieldSelector": args.Fields, "continue": args.Continue}))
	if err != nil {
		return "", err
	}
	lines := found.lines(args.Wide, t.kind.Namespaced && t.namespace == "")
	return tools.FitLines(a.call.Chat, len(lines), func(shown, bytes int) any {
		r := listResult{Table: tools.Truncate(strings.Join(lines[:shown], "\n"), bytes), Count: max(0, shown-1),
			LeftOut: len(lines) - shown}
		if r.LeftOut == 0 {
			r.Continue, r.Remaining = found.Metadata.Continue, found.Metadata.Remaining
		}
		return r
	})
}

// asTable requests the output of kubectl get.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

// page is a page of a list: the part of meta.k8s.io/v1 Table that is shown.
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

// table reads a page of a list. The API server prints no values of Secrets in cells.
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

// lines are the names of the columns and the rows as text. wide adds the columns of -o wide.
func (p *page) lines(wide, namespaces bool) []string {
	rows := make([][]string, 1+len(p.Rows))
	if namespaces {
		rows[0] = append(rows[0], "NAMESPACE")
		for i := range p.Rows {
			rows[i+1] = append(rows[i+1], cell(p.Rows[i].Object.Metadata.Namespace))
		}
	}
	for column, c := range p.Columns {
		if !wide && c.Priority != 0 {
			continue
		}
		rows[0] = append(rows[0], strings.ToUpper(cell(c.Name)))
		for i := range p.Rows {
			if cells := p.Rows[i].Cells; column < len(cells) {
				rows[i+1] = append(rows[i+1], cell(cells[column]))
			}
		}
	}
	return align(rows)
}

// cell is a cell in one line.
func cell(value any) string {
	if value == nil {
		return "<none>"
	}
	if number, ok := value.(float64); ok && number == float64(int64(number)) {
		return fmt.Sprintf("%d", int64(number))
	}
	if text := printable.Line(fmt.Sprint(value)); text != "" {
		return text
	}
	return "<none>"
}

// align returns the rows as lines, with the columns two spaces apart.
func align(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = min(maxAligned, max(widths[i], utf8.RuneCountInString(cell)))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			lines[n] += fmt.Sprintf("%-*s  ", widths[i], cell)
		}
		lines[n] = strings.TrimRight(lines[n], " ")
	}
	return lines
}
