// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"parley.dev/parley/api/changes"
)

// GetChanges reads what is changed in the workspace of a chat.
func GetChanges(ctx context.Context, n Namespace, chat string) (*changes.Changes, error) {
	return call[changes.Changes](ctx, n, http.MethodGet, nil, nil, "chats", chat, "changes")
}

// GetPatch reads the changes of a Git repository in the workspace of a chat as a patch for git apply. The repository is
// named by its path, as GetChanges returns it; empty: the only one.
func GetPatch(ctx context.Context, n Namespace, chat, repository string) ([]byte, error) {
	path, err := n.path("chats", chat)
	if err != nil {
		return nil, err
	}
	query := url.Values{}
	if repository != "" {
		query.Set("repository", repository)
	}
	response, err := n.client.send(ctx, http.MethodGet, path+"/changes.patch", query, http.Header{}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	patch, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the patch: %w", err)
	}
	return patch, nil
}
