// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/parameters"
)

const (
	// maxParameters bounds the parameters of a template, maxValue the characters of a value.
	maxParameters, maxValue = 64, 1024
	// maxResult is in bytes. A result must not be shortened, because the operator acts on it.
	maxResult = 4 << 10
)

// value of a parameter, as in v1beta1.WorkspaceParameter.
type value struct {
	Name  string `json:"name" doc:"The parameter."`
	Value string `json:"value" doc:"Its value."`
}

type createResult struct {
	Template   string  `json:"template" doc:"The template that the workspace is made from."`
	Parameters []value `json:"parameters,omitempty" doc:"The values that were given for its parameters."`
	Exists     bool    `json:"exists,omitempty" doc:"Whether the chat had this workspace before."`
	Note       string  `json:"note" doc:"What happens next."`
}

func (r *createResult) reference() *v1beta1.WorkspaceTemplateReference {
	ref := &v1beta1.WorkspaceTemplateReference{Name: r.Template}
	for _, p := range r.Parameters {
		ref.Parameters = append(ref.Parameters, v1beta1.WorkspaceParameter(p))
	}
	return ref
}

type createArguments struct {
	Template   string  `json:"template"`
	Parameters []value `json:"parameters"`
}

func (o Options) createWorkspace() tools.Tool {
	return tools.New(tools.Definition{
		Name: "create_workspace",
		Description: "Creates the workspace of this chat from a template: the place where its files are and its commands " +
			"run. Call it alone, once; the tools for files and commands are there from the next reply on. A chat has one " +
			"workspace.",
		InputSchema: arguments.Object(map[string]any{
			"template": arguments.Text(1, maxName, "The template, from list_templates."),
			"parameters": map[string]any{"type": "array", "maxItems": maxParameters,
				"description": "Values for parameters of the template, see read_template. Default: their defaults.",
				"items": arguments.Object(map[string]any{
					"name":  arguments.Text(1, 63, "The parameter."),
					"value": arguments.Text(0, maxValue, "Its value, numbers and booleans as text, too."),
				}, "name", "value")},
		}, "template"),
		// Chats of every mode read files. Calls of the same reply could not work in the workspace yet.
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: mayChoose, Exclusive: true,
			Repeatable: true, ChangeWorkspace: workspaceChange},
		Reference: tools.Reference{Offered: offered, Result: createResult{},
			Errors: []string{
				"There is no such template, or it is wrong, or a value does not fit: the error says what is possible.",
				"The chat has a workspace from another template, or with other parameters.",
				"It was not called alone.",
			},
			Limits: []string{fmt.Sprintf("%d characters a value, and %d KiB for all of them as JSON.", maxValue,
				maxResult>>10)}},
	}, o.create)
}

// create checks the choice.
func (o Options) create(ctx context.Context, call tools.Call, args createArguments) (string, error) {
	template, declared, err := o.find(ctx, call.Chat, args.Template)
	if err != nil {
		return "", err
	}
	result := createResult{Template: template.Name, Parameters: args.Parameters,
		Note: "It starts with the first call that needs it, which waits until it is ready."}
	if err := checkValues(declared, result.reference().Parameters); err != nil {
		return "", err
	}
	if result.Exists, err = exists(call.Chat, result.reference()); err != nil {
		return "", err
	}
	text, err := tools.Encode(result)
	if err == nil && len(text) > maxResult {
		return "", fmt.Errorf("the values are too long: as JSON they have %d bytes, and may have %d", len(text), maxResult)
	}
	return text, err
}

// checkValues returns an error unless the template takes the values, one for each parameter.
func checkValues(declared []parameters.Parameter, values []v1beta1.WorkspaceParameter) error {
	for i, p := range values {
		if slices.ContainsFunc(values[:i], func(q v1beta1.WorkspaceParameter) bool { return p.Name == q.Name }) {
			return fmt.Errorf("parameter %q has two values: give one", p.Name)
		}
	}
	_, err := parameters.Values(declared, values)
	return err
}

// exists reports whether the chat has this very workspace. The error names another one that it has.
func exists(chat *v1beta1.Chat, want *v1beta1.WorkspaceTemplateReference) (bool, error) {
	if chat.Status.Workspace == nil || chat.Status.Workspace.PodTemplateRef == nil {
		return false, nil
	}
	has := chat.Status.Workspace.PodTemplateRef
	if has.Name == want.Name && maps.Equal(byName(has.Parameters), byName(want.Parameters)) {
		return true, nil
	}
	return false, fmt.Errorf("this chat has a workspace from template %s already, and cannot have another one: "+
		"work in that", has.Name)
}

func byName(all []v1beta1.WorkspaceParameter) map[string]string {
	values := make(map[string]string, len(all))
	for _, p := range all {
		values[p.Name] = p.Value
	}
	return values
}

func workspaceChange(result v1beta1.ToolResult) *v1beta1.WorkspaceChange {
	var choice createResult
	if json.Unmarshal([]byte(result.Output), &choice) != nil || choice.Template == "" || choice.Exists {
		return nil
	}
	return &v1beta1.WorkspaceChange{Create: choice.reference()}
}

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
			Directory: cmp.Or(t.Annotations[v1beta1.AnnotationDirectory], v1beta1.DefaultWorkspaceDirectory)}
		for _, p := range declared {
			result.Parameters = append(result.Parameters, parameter{Name: p.Name, Description: p.Description,
				Type: string(p.Type), Default: p.Default, Allowed: p.Allowed})
		}
		return tools.Fit(call.Chat, 0, func(int) any { return result })
	})
}
