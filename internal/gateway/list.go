// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"slices"

	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/chatlist"
	"parley.dev/parley/internal/gateway/refusal"
)

// openList begins the story of a namespace's chats.
func (g *Gateway) openList(r *http.Request, access auth.Access) (feed, *refusal.Error) {
	if !slices.Contains([]string{"", "1", "true"}, r.URL.Query().Get("watch")) {
		return feed{}, badRequest("watch must be true, 1 or empty; without it the list comes once")
	}
	from, err := chatlist.ParsePosition(lastEventID(r))
	if err != nil {
		return feed{}, badRequest(err.Error())
	}
	return feed{stop: func() {}, run: func(ctx context.Context, out *eventWriter) error {
		lister := chatlist.Lister{
			Chats: g.chats, Logs: g.chats.logs, Namespace: access.Namespace,
			Send: out.send, KeepAlive: out.keepAlive, KeepAliveEvery: g.keepAlive,
		}
		return lister.Run(ctx, from)
	}}, nil
}
