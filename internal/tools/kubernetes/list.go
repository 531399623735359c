// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// list lists objects.
type list struct{ *common }

const (
	// defaultListed is how many objects are listed, maxListed the most.
	defaultListed, maxListed = 50, 500
	// maxSelector is the most characters of a selector, maxContinue those of what goes on with a list.
	maxSelector, maxContinue = 1024, 4096
)

type listArguments struct {
	named
	All      bool   `json:"all_namespaces"`
	Labels   string `json:"label_selector"`
	Fields   string `json:"field_selector"`
	Wide     bool   `json:"wide"`
	Limit    int    `json:"limit"`
	Continue string `json:"continue"`
}

type listResult struct {
	Table     string `json:"table" doc:"A line for each object, below the names of the columns."`
	Count     int    `json:"count" doc:"How many objects are shown."`
	LeftOut   int    `json:"left_out,omitempty" doc:"How many of the page do not fit: ask for a smaller limit."`
	Continue  string `json:"continue,omitempty" doc:"For the next page. Not there if some of this one are left out."`
	Remaining *int64 `json:"remaining,omitempty" doc:"How many more there are, where the API server reports it."`
}

func (list) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInK8sList),
		Description: "Lists objects of the Kubernetes cluster as kubectl get prints them, a page at a time.",
		InputSchema: arguments.Object(map[string]any{
			"resource": resourceArgument(), "namespace": namespaceArgument(),
			"all_namespaces": arguments.Boolean("Whether to list the objects of all namespaces."),
			"label_selector": arguments.Text(1, maxSelector, "Only objects with these labels, such as app=web,tier!=db."),
			"field_selector": arguments.Text(1, maxSelector, "Only objects with these fields, such as status.phase=Running."),
			"wide":           arguments.Boolean("Whether to show the columns that kubectl shows with -o wide."),
			"limit":          arguments.Integer(1, maxListed, defaultListed, "How many to list."),
			"continue":       arguments.Text(1, maxContinue, "What an earlier page says, to have the next one."),
		}, "resource"),
		Traits: reading,
		Reference: tools.Reference{Offered: offered, Result: listResult{}, Errors: append(commonErrors,
			"The list has changed so much since the page before that it cannot be gone on with: list it again."),
			Limits: []string{"Each page shows what the API server prints of its objects, which of Secrets is no value."}},
	}
}

// Run lists them.
func (t list) Run(ctx context.Context, call tools.Call) (string, error) {
	var given listArguments
	a, err := t.begin(ctx, call, t.Definition().InputSchema, &given)
	if err != nil {
		return "", err
	}
	kind, err := a.find(ctx, given.Resource)
	if err != nil {
		return "", err
	}
	namespace := a.within(kind, given.Namespace)
	if given.All {
		namespace = ""
	}
	found, err := a.table(ctx, kind, namespace, given.query())
	if err != nil {
		return "", err
	}
	lines := found.lines(given.Wide, kind.Namespaced && namespace == "")
	return tools.FitLines(call.Chat, len(lines), func(shown, bytes int) any {
		return found.result(lines[:shown], len(lines)-shown, bytes)
	})
}

// query is what the API server is asked.
func (given *listArguments) query() url.Values {
	query := url.Values{"limit": {strconv.Itoa(given.Limit)}}
	for name, value := range map[string]string{
		"labelSelector": given.Labels, "fieldSelector": given.Fields, "continue": given.Continue,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// result is the page of which so many lines are left out.
func (p *page) result(lines []string, leftOut, bytes int) listResult {
	r := listResult{Table: tools.Truncate(strings.Join(lines, "\n"), bytes), Count: max(0, len(lines)-1), LeftOut: leftOut}
	if leftOut == 0 {
		r.Continue, r.Remaining = p.Metadata.Continue, p.Metadata.Remaining
	}
	return r
}
