// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
)

// Configuration is a kind that configures chats, in one namespace. Its objects are maps, so that fields of a newer API
// server are kept. Errors are the API server's own.
type Configuration struct {
	rest                rest.Interface
	namespace, resource string
}

// Configuration is the kind with that resource.
func (c *Client) Configuration(namespace, resource string) Configuration {
	return Configuration{c.rest, namespace, resource}
}

// Configured is what a list shows of an object.
type Configured struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		// Provider and Model are those of a ChatModelConfig, Description that of a ChatClass.
		Provider    string `json:"provider"`
		Model       string `json:"model"`
		Description string `json:"description"`
		Default     bool   `json:"default"`
		Disabled    bool   `json:"disabled"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// List returns the first objects by name, at most so many, and whether there are more.
func (c Configuration) List(ctx context.Context, most string) (all []Configured, more bool, err error) {
	var page struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []Configured    `json:"items"`
	}
	err = decode(ctx, c.on(c.rest.Get()).Param("limit", most), &page)
	return page.Items, page.Metadata.Continue != "", err
}

// Get reads an object.
func (c Configuration) Get(ctx context.Context, name string) (object map[string]any, err error) {
	return object, decode(ctx, c.on(c.rest.Get()).Name(name), &object)
}

// Create creates an object, and returns it as it is stored. A dry run stores nothing.
func (c Configuration) Create(ctx context.Context, object map[string]any, dryRun bool) (map[string]any, error) {
	return c.write(ctx, c.on(c.rest.Post()), object, dryRun)
}

// Update replaces an object that still has the resourceVersion of this one, and returns it as it is stored. A dry run
// stores nothing.
func (c Configuration) Update(ctx context.Context, name string, object map[string]any, dryRun bool) (map[string]any,
	error) {
	return c.write(ctx, c.on(c.rest.Put()).Name(name), object, dryRun)
}

func (c Configuration) on(r *rest.Request) *rest.Request {
	return r.Namespace(c.namespace).Resource(c.resource)
}

func (c Configuration) write(ctx context.Context, r *rest.Request, object map[string]any, dryRun bool) (
	stored map[string]any, err error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding an object of %s: %w", c.resource, err)
	}
	// A field that the API server does not know would be dropped without a word.
	r = r.Param("fieldValidation", metav1.FieldValidationStrict)
	if dryRun {
		r = r.Param("dryRun", metav1.DryRunAll)
	}
	return stored, decode(ctx, r.SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body), &stored)
}

// SpecSchema returns the schema of the spec of a kind, in JSON, as the API server publishes it; null: there is no such
// kind. Errors are the API server's own.
func (c *Client) SpecSchema(ctx context.Context, kind string) (json.RawMessage, error) {
	var published struct {
		Components struct {
			Schemas map[string]struct {
				Kinds      []metav1.GroupVersionKind  `json:"x-kubernetes-group-version-kind"`
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	version := v1beta1.GroupVersion
	err := decode(ctx, c.rest.Get().AbsPath("/openapi/v3/apis", version.Group, version.Version), &published)
	if err != nil {
		return nil, err
	}
	gvk := metav1.GroupVersionKind{Group: version.Group, Version: version.Version, Kind: kind}
	for _, schema := range published.Components.Schemas {
		if slices.Contains(schema.Kinds, gvk) {
			return schema.Properties["spec"], nil
		}
	}
	return nil, nil
}
