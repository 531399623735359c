// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"

	"parley.dev/parley/internal/kube/apiclient"
)

// maxNamespaces bounds a list of namespaces.
const maxNamespaces = 2000

// Namespaces are those of the cluster.
type Namespaces struct {
	Body struct {
		Namespaces []string `json:"namespaces" doc:"Their names, at most 2000."`
		More       bool     `json:"more,omitempty" doc:"Whether there are others, which are not listed."`
	}
}

// listNamespaces is the operation that none of Parley's roles grants.
const listNamespaces = "listNamespaces"

// namespaces are the operations on namespaces.
type namespaces struct{ client *apiclient.Client }

func (n namespaces) serve(a *api) {
	register(a, operation(listNamespaces, http.MethodGet, "/namespaces", "List the namespaces of the cluster",
		"For those who may list them. Which chats the caller may see in one, its list of chats says.", http.StatusOK),
		n.listNamespaces)
}

func (n namespaces) listNamespaces(ctx context.Context, _ *struct{}) (*Namespaces, error) {
	names, more, err := n.client.Namespaces(ctx, maxNamespaces)
	if err != nil {
		return nil, from(ctx, err)
	}
	out := &Namespaces{}
	out.Body.Namespaces, out.Body.More = append([]string{}, names...), more
	return out, nil
}
