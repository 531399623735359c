// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/parameters"
)

// list lists the templates.
type list struct{ *common }

// Name is list_templates.
func (list) Name() string { return "list_templates" }

// In every mode it may be called: it changes nothing.
func (list) In(v1alpha1.ChatMode) tools.Use { return tools.Free }

// Description tells the model when to call it.
func (list) Description() string {
	return "Lists the templates that the workspace of this chat can be made from. Read the one that fits with " +
		"read_template, and call create_workspace with its name."
}

// InputSchema has no arguments.
func (list) InputSchema() map[string]any { return arguments.Object(map[string]any{}) }

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

// Reference is what people read of the tool.
func (list) Reference() tools.Reference {
	return tools.Reference{Offered: offered, Result: listResult{}, Limits: []string{
		fmt.Sprintf("%d templates, of together %d MiB as the API server has them.", maxTemplates, maxBytes>>20)}}
}

// Run lists the templates.
func (t list) Run(ctx context.Context, call tools.Call) (string, error) {
	if err := arguments.Decode(t.InputSchema(), call.Input, &struct{}{}); err != nil {
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
