// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/parameters"
)

const (
	// maxParameters is how many parameters a template has, maxValue how many characters a value.
	maxParameters, maxValue = 64, 1024
	// maxResult is how many bytes a result may have: it must never be shortened, because it is what is decided.
	maxResult = 4 << 10
)

// create decides what the workspace is made from.
type create struct{ *common }

// value of a parameter, as in v1alpha1.WorkspaceParameter.
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

func (r *createResult) reference() *v1alpha1.WorkspaceTemplateReference {
	ref := &v1alpha1.WorkspaceTemplateReference{Name: r.Template}
	for _, p := range r.Parameters {
		ref.Parameters = append(ref.Parameters, v1alpha1.WorkspaceParameter(p))
	}
	return ref
}

func (create) Definition() tools.Definition {
	return tools.Definition{
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
		// A workspace is where a chat looks, in every mode. Calls of the same reply could not work in it yet.
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: suits, Exclusive: true,
			Repeatable: true, ChangeWorkspace: createWorkspace},
		Reference: tools.Reference{Offered: offered, Result: createResult{},
			Errors: []string{
				"There is no such template, or it is wrong, or a value does not fit: the error says what is possible.",
				"The chat has a workspace from another template, or with other parameters.",
				"It was not called alone.",
			},
			Limits: []string{fmt.Sprintf("%d characters a value, and %d KiB for all of them as JSON.", maxValue,
				maxResult>>10)}},
	}
}

// Run checks the choice.
func (t create) Run(ctx context.Context, call tools.Call) (string, error) {
	var given struct {
		Template   string  `json:"template"`
		Parameters []value `json:"parameters"`
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
	result := createResult{Template: template.Name, Parameters: given.Parameters,
		Note: "It starts with the first call that needs it, which waits until it is ready."}
	if err := fits(declared, result.reference().Parameters); err != nil {
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

// fits reports whether the values are those of one workspace.
func fits(declared []parameters.Parameter, given []v1alpha1.WorkspaceParameter) error {
	for i, p := range given {
		if slices.ContainsFunc(given[:i], func(q v1alpha1.WorkspaceParameter) bool { return p.Name == q.Name }) {
			return fmt.Errorf("parameter %q has two values: give one", p.Name)
		}
	}
	_, err := parameters.Values(declared, given)
	return err
}

// exists reports whether the chat has this very workspace. The error says which other one it has.
func exists(chat *v1alpha1.Chat, want *v1alpha1.WorkspaceTemplateReference) (bool, error) {
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

func byName(all []v1alpha1.WorkspaceParameter) map[string]string {
	values := make(map[string]string, len(all))
	for _, p := range all {
		values[p.Name] = p.Value
	}
	return values
}

// createWorkspace is what a result of create decides.
func createWorkspace(result v1alpha1.ToolResult) *v1alpha1.WorkspaceChange {
	var decided createResult
	if json.Unmarshal([]byte(result.Output), &decided) != nil || decided.Template == "" || decided.Exists {
		return nil
	}
	return &v1alpha1.WorkspaceChange{Create: decided.reference()}
}
