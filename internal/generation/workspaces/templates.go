// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspaces

import (
	"context"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/tools/templates"
)

// Templates are those of a namespace, as models may know them.
type Templates struct {
	// Namespace of the templates.
	Namespace string
	// Client reads them.
	Client *apiclient.Client
}

// List lists at most so many that the label selector selects, in as many bytes at most as the API server has them in,
// and says whether there are more.
func (t Templates) List(
	ctx context.Context, selector string, most int, mostBytes int64,
) ([]templates.Template, bool, error) {
	found, more, err := t.Client.PodTemplates(ctx, t.Namespace, selector, most, mostBytes)
	var all []templates.Template
	for i := range found {
		all = append(all, templateOf(&found[i]))
	}
	return all, more, err
}

// templateOf leaves out what is not for models.
func templateOf(t *apiclient.PodTemplate) templates.Template {
	known := templates.Template{Name: t.Metadata.Name, Annotations: t.Metadata.Annotations}
	all := t.Template.Spec.Containers
	i := slices.IndexFunc(all, func(c apiclient.Container) bool { return c.Name == v1alpha1.WorkspaceContainer })
	if i = max(i, 0); i < len(all) {
		known.Image, known.Requests, known.Limits = all[i].Image, all[i].Resources.Requests, all[i].Resources.Limits
	}
	return known
}
