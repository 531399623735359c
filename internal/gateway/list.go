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
	if query := r.URL.Query(); !query.Has("watch") || !slices.Contains([]string{"", "1", "true"}, query.Get("watch")) {
		return feed{}, badRequest("the list of chats is served as a stream alone: ask with ?watch")
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
