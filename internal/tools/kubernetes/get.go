// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// get reads an object.
type get struct{ *common }

type named struct {
	Resource  string `json:"resource"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type getResult struct {
	Object string `json:"object" doc:"The object as YAML, without managedFields."`
}

func (get) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1alpha1.BuiltInK8sGet),
		Description: "Reads an object of the Kubernetes cluster as YAML. Of Secrets it shows keys and sizes, never values.",
		InputSchema: arguments.Object(map[string]any{
			"resource": resourceArgument(), "name": nameArgument(), "namespace": namespaceArgument(),
		}, "resource", "name"),
		Traits: reading,
		Reference: tools.Reference{Offered: offered, Result: getResult{}, Errors: commonErrors,
			Limits: []string{"Of an object that is larger than a result the beginning and the end are shown.",
				"Of Secrets, also of those within other objects, data and annotations show sizes in place of values."}},
	}
}

// Run reads it.
func (t get) Run(ctx context.Context, call tools.Call) (string, error) {
	var given named
	a, err := t.begin(ctx, call, t.Definition().InputSchema, &given)
	if err != nil {
		return "", err
	}
	kind, err := a.find(ctx, given.Resource)
	if err != nil {
		return "", err
	}
	object, err := a.object(ctx, kind, given.Namespace, given.Name)
	if err != nil {
		return "", err
	}
	shown, err := text(object.Object)
	if err != nil {
		return "", err
	}
	return fit(a, shown, func(text string) any { return getResult{Object: text} })
}
