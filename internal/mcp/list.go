// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/httpguard"
)

const (
	// maxPages and maxListed are how many pages and tools a list has at most.
	maxPages  = 32
	maxListed = 1000
	// keepFor is how long a list counts whose server does not say so: 5 minutes. What a server says counts from
	// minKeep to maxKeep.
	keepFor          = 5 * time.Minute
	minKeep, maxKeep = 10 * time.Second, time.Hour
)

// listed are the tools of a server, and for how long that counts.
type listed struct {
	selection
	keep time.Duration
}

// fetch asks a server for its tools. The error is a *failure, or that of ctx.
func (s *Servers) fetch(ctx context.Context, e *endpoint, client *http.Client) (*listed, error) {
	opened, err := s.connect(ctx, e, client)
	if err != nil {
		return nil, err
	}
	defer opened.close()
	ctx, notes := httpguard.WithNotes(ctx, s.options.Now)
	all, keep, err := opened.tools(ctx)
	if err != nil {
		return nil, s.told(ctx, e, opened.line.failure(ctx, err, notes, e.secrets), err)
	}
	return &listed{selection: choose(e.server, all, e.secrets), keep: keep}, nil
}

// tools are all that the server lists, and for how long the list counts.
func (s *session) tools(ctx context.Context) (all []*sdk.Tool, keep time.Duration, err error) {
	if can := s.joined.InitializeResult().Capabilities; can == nil || can.Tools == nil {
		return nil, keepFor, nil
	}
	keep, cursor := keepFor, ""
	for range maxPages {
		page, err := s.joined.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, 0, err
		}
		if said := time.Duration(page.TTLMs) * time.Millisecond; said > 0 {
			keep = min(max(said, minKeep), maxKeep)
		}
		if all = append(all, page.Tools...); len(all) > maxListed {
			break
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, keep, nil
		}
	}
	return nil, 0, &failure{reason: v1alpha1.MCPResponseInvalid, words: "its list of tools has no end"}
}
