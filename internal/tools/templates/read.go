// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"cmp"
	"context"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/parameters"
)

type listEntry struct {
	Name        string   `json:"name" doc:"Its name for the other tools."`
	Description string   `json:"description,omitempty" doc:"What it is for, in the words of who made it."`
	Parameters  []string `json:"parameters,omitempty" doc:"The names of its parameters."`
}

type listResult struct {
	Templates []listEntry `json:"templates" doc:"The templates, by name."`
	Note      string      `json:"note,omitempty" doc:"Whether there are more."`
}

func (o Options) listTemplates() tools.Tool {
	return tools.New(tools.Definition{
		Name: "list_templates",
		Description: "Lists the templates that the workspace of this chat can be made from. Read the one that fits with " +
			"read_template, and call create_workspace with its name.",
		InputSchema: arguments.Object(map[string]any{}),
		Traits:      reading,
		Reference: tools.Reference{Offered: offered, Result: listResult{}, Limits: []string{
			fmt.Sprintf("%d templates, of together %d MiB as the API server has them.", maxTemplates, maxBytes>>20)}},
	}, func(ctx context.Context, call tools.Call, _ struct{}) (string, error) {
		all, more, err := o.selectedBy(ctx, call.Chat)
		if err != nil {
			return "", err
		}
		return tools.Fit(call.Chat, len(all), func(most int) any {
			result := listResult{Templates: []listEntry{}}
			for i := range all[:most] {
				entry := listEntry{Name: all[i].Name, Description: all[i].description()}
				declared, _ := parameters.Of(all[i].Annotations) // read_template reports the error.
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
	})
}

type parameter struct {
	Name        string   `json:"name" doc:"Its name."`
	Description string   `json:"description,omitempty" doc:"What it means."`
	Type        string   `json:"type" doc:"string, integer, boolean or quantity."`
	Default     *string  `json:"default,omitempty" doc:"Its value if none is given; without a default one must be given."`
	Allowed     []string `json:"allowed,omitempty" doc:"The values that may be given; missing: any of the type."`
}

type readArguments struct {
	Template string `json:"template"`
}

type readResult struct {
	Name        string            `json:"name" doc:"Its name."`
	Description string            `json:"description,omitempty" doc:"What it is for, in the words of who made it."`
	Image       string            `json:"image,omitempty" doc:"What commands run in, unless a parameter chooses it."`
	Requests    map[string]string `json:"requests,omitempty" doc:"What it requests, unless a parameter says so."`
	Limits      map[string]string `json:"limits,omitempty" doc:"What it may use, unless a parameter says so."`
	Directory   string            `json:"directory" doc:"Where its files are."`
	Parameters  []parameter       `json:"parameters,omitempty" doc:"Its parameters."`
}

func (o Options) readTemplate() tools.Tool {
	return tools.New(tools.Definition{
		Name: "read_template",
		Description: "Shows a template that the workspace of this chat can be made from: its image, its resources and its " +
			"parameters, with their defaults and the values that they allow.",
		InputSchema: arguments.Object(map[string]any{
			"template": arguments.Text(1, maxName, "The template, from list_templates."),
		}, "template"),
		Traits: reading,
		Reference: tools.Reference{Offered: offered, Result: readResult{},
			Errors: []string{"There is no such template: the error names those that there are.",
				"The template is wrong: the error says what."}},
	}, func(ctx context.Context, call tools.Call, args readArguments) (string, error) {
		t, declared, err := o.find(ctx, call.Chat, args.Template)
		if err != nil {
			return "", err
		}
		result := readResult{Name: t.Name, Description: t.description(), Image: t.Image, Requests: t.Requests,
			Limits:    t.Limits,
			Directory: cmp.Or(t.Annotations[v1alpha1.AnnotationDirectory], v1alpha1.DefaultWorkspaceDirectory)}
		for _, p := range declared {
			result.Parameters = append(result.Parameters, parameter{Name: p.Name, Description: p.Description,
				Type: string(p.Type), Default: p.Default, Allowed: p.Allowed})
		}
		return tools.Fit(call.Chat, 0, func(int) any { return result })
	})
}
