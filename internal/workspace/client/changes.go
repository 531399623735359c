// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"parley.dev/parley/api/changes"
)

const (
	// changesTime is how long git may take, in addition to Options.Timeout.
	changesTime = 20 * time.Second
	// maxChanges is the most that is read of changes: diffs of 4 MiB, whose characters may have six bytes in JSON.
	maxChanges = 28 << 20
)

// Changes finds what is changed in the workspace.
func (c *Client) Changes(ctx context.Context) (*changes.Changes, error) {
	return send[changes.Changes](ctx, c, request{method: http.MethodGet, path: "/v1/changes", most: maxChanges,
		wait: changesTime}, nil)
}

// Patch returns what is changed in a repository as a patch; empty: in the only one, or outside of repositories.
func (c *Client) Patch(ctx context.Context, repository string) ([]byte, error) {
	got, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/patch",
		query: url.Values{"repository": {repository}}, wait: changesTime})
	if err != nil {
		return nil, err
	}
	return got.body, nil
}
