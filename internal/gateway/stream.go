// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/compat"
	"parley.dev/parley/internal/gateway/conduct"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/telemetry"
)

// compatible serves chats to clients of OpenAI and Anthropic.
func (g *Gateway) compatible() http.Handler {
	return compat.New(compat.Options{
		Conductor: conduct.New(conduct.Options{Client: g.config.Callers, May: g.may, Follow: g.follow, Now: g.config.Now}),
		Permit: func(ctx context.Context, token string) (string, *refusal.Error) {
			return g.config.Checker.Permit(ctx, token)
		},
		Refused: g.refused,
	})
}

// may is why somebody may not listen to a chat; nil if he may.
func (g *Gateway) may(ctx context.Context, token string, access auth.Access) *refusal.Error {
	_, refused := g.config.Checker.Check(ctx, token, access)
	return refused
}

// follow follows a chat for a caller within the gateway as a stream of it would: with a seat, and as long as the caller
// may. It returns why it ended.
func (g *Gateway) follow(ctx context.Context, f conduct.Follow) error {
	caller, refused := g.admit(ctx, f.Token, f.Access)
	if refused != nil {
		return refused
	}
	defer caller.lease.Release()
	watcher := g.chats.watch(f.Access.Namespace, f.Access.Chat)
	defer watcher.stop()
	if !g.arrives(ctx, watcher) {
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.NotFound, RetryAfter: time.Second,
			Message: fmt.Sprintf("the gateway does not know chat %s: it is new, or was deleted. Try again", f.Access.Chat)}
	}
	closed := g.config.Metrics.StreamOpened()
	permitted, stop := caller.whilePermitted(ctx)
	defer stop()
	err := g.followWatched(permitted, f, watcher)
	reason := telemetry.StreamOver
	if closing, ok := errors.AsType[*stream.Closing](err); ok {
		reason = closing.Reason
	} else if ctx.Err() != nil {
		reason = telemetry.StreamLeft
	}
	closed(reason)
	return err
}

func (g *Gateway) followWatched(ctx context.Context, f conduct.Follow, watcher *watcher) error {
	chat := watcher.Latest()
	if chat == nil {
		return f.Send(stream.Event{Name: stream.EventDeleted, Data: []byte("{}")})
	}
	follower := follow.Follower{
		Chats: watcher, Messages: g.messages, Parts: g.parts, Memory: g.memory,
		Encodings: g.encoded, Send: f.Send, KeepAlive: f.Alive, KeepAliveEvery: g.keepAlive,
	}
	if err := follower.Run(ctx, f.From(chat)); err != nil {
		return fmt.Errorf("following chat %s: %w", f.Access.Chat, err)
	}
	return nil
}

func starting() *refusal.Error {
	return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.Starting, RetryAfter: time.Second,
		Message: "the gateway is starting, try again"}
}
