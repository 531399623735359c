// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"fmt"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/parameters"
)

// list lists the templates.
type list struct{ *common }

// listed is a template in a list.
type listed struct {
	Name        string   `json:"name" doc:"Its name for the other tools."`
	Description string   `json:"description,omitempty" doc:"What it is for, in the words of who made it."`
	Parameters  []string `json:"parameters,omitempty" doc:"The names of its parameters."`
}

type listResult struct {
	Templates []listed `json:"templates" doc:"The templates, by name."`
	Note      string   `json:"note,omitempty" doc:"Whether there are more."`
}

func (list) Definition() tools.Definition {
	return tools.Definition{
		Name: "list_templates",
		Description: "Lists the templates that the workspace of this chat can be made from. Read the one that fits with " +
			"read_template, and call create_workspace with its name.",
		InputSchema: arguments.Object(map[string]any{}),
		Traits:      tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: suits, Repeatable: true},
		Reference: tools.Reference{Offered: offered, Result: listResult{}, Limits: []string{
			fmt.Sprintf("%d templates, of together %d MiB as the API server has them.", maxTemplates, maxBytes>>20)}},
	}
}

// Run lists the templates.
func (t list) Run(ctx context.Context, call tools.Call) (string, error) {
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &struct{}{}); err != nil {
		return "", err
	}
	all, more, err := t.choice(ctx, call.Chat)
	if err != nil {
		return "", err
	}
	return tools.Fit(call.Chat, len(all), func(most int) any {
		result := listResult{Templates: []listed{}}
		for i := range all[:most] {
			entry := listed{Name: all[i].Name, Description: description(&all[i])}
			declared, _ := parameters.Of(all[i].Annotations) // What is wrong with it, read_template says.
			for _, p := range declared {
				entry.Parameters = append(entry.Parameters, p.Name)
			}
			result.Templates = append(result.Templates, entry)
		}
		switch {
		case more:
			result.Note = "There are " + tooMany + "."
		case most < len(all):
			result.Note = "There are more."
		}
		return result
	})
}
