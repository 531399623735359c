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

// read shows a template.
type read struct{ *common }

// parameter of a template, as the model reads it.
type parameter struct {
	Name        string   `json:"name" doc:"Its name."`
	Description string   `json:"description,omitempty" doc:"What it means."`
	Type        string   `json:"type" doc:"string, integer, boolean or quantity."`
	Default     *string  `json:"default,omitempty" doc:"Its value if none is given; without a default one must be given."`
	Allowed     []string `json:"allowed,omitempty" doc:"The values that may be given; missing: any of the type."`
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

func (read) Definition() tools.Definition {
	return tools.Definition{
		Name: "read_template",
		Description: "Shows a template that the workspace of this chat can be made from: its image, its resources and its " +
			"parameters, with their defaults and the values that they allow.",
		InputSchema: arguments.Object(map[string]any{
			"template": arguments.Text(1, maxName, "The template, from list_templates."),
		}, "template"),
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: suits, Repeatable: true},
		Reference: tools.Reference{Offered: offered, Result: readResult{},
			Errors: []string{"There is no such template: the error names those that there are.",
				"The template is wrong: the error says what."}},
	}
}

// Run shows the template.
func (t read) Run(ctx context.Context, call tools.Call) (string, error) {
	var given struct {
		Template string `json:"template"`
	}
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return "", err
	}
	template, err := t.one(ctx, call.Chat, given.Template)
	if err != nil {
		return "", err
	}
	declared, err := parameters.Of(template.Annotations)
	if err != nil {
		return "", wrong(template, err)
	}
	return tools.Fit(call.Chat, 0, func(int) any { return shown(template, declared) })
}

func wrong(t *Template, err error) error {
	return fmt.Errorf("template %s is invalid: a person must fix it, or choose another one: %w", t.Name, err)
}

func shown(t *Template, declared []parameters.Parameter) readResult {
	result := readResult{Name: t.Name, Description: description(t), Image: t.Image, Requests: t.Requests, Limits: t.Limits,
		Directory: cmp.Or(t.Annotations[v1alpha1.AnnotationDirectory], v1alpha1.DefaultWorkspaceDirectory)}
	for _, p := range declared {
		result.Parameters = append(result.Parameters, parameter{Name: p.Name, Description: p.Description,
			Type: string(p.Type), Default: p.Default, Allowed: p.Allowed})
	}
	return result
}
