// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/conduct"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/openai"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/telemetry"
)

// openai serves chats to OpenAI's clients.
func (g *Gateway) openai() http.Handler {
	return openai.New(openai.Options{
		Conductor: conduct.New(conduct.Options{Client: g.config.Callers, May: g.may, Hear: g.hear, Now: g.config.Now}),
		Permit: func(ctx context.Context, token string) (string, *refusal.Error) {
			return g.config.Checker.Permit(ctx, token)
		},
		Refused: func(ctx context.Context, refused *refusal.Error) {
			g.config.Metrics.Refused(refused.Reason)
			g.report(ctx, refused)
		},
	})
}

// may is why somebody may not listen to a chat; nil if he may.
func (g *Gateway) may(ctx context.Context, token string, access auth.Access) *refusal.Error {
	_, refused := g.config.Checker.Check(ctx, token, access)
	return refused
}

// hear follows a chat for a caller within the gateway, as a stream of it would: with a seat, and as long as the caller
// may. It returns why it ended.
func (g *Gateway) hear(ctx context.Context, h conduct.Hearing) error {
	grant, refused := g.config.Checker.Check(ctx, h.Token, h.Access)
	if refused != nil {
		return refused
	}
	if !g.Synced() {
		return starting()
	}
	leave, refused := g.seat(grant.User)
	if refused != nil {
		return refused
	}
	defer leave()
	watcher := g.chats.watch(h.Access.Namespace, h.Access.Chat)
	defer watcher.stop()
	if !g.arrives(ctx, watcher) {
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.NotFound, RetryAfter: time.Second,
			Message: fmt.Sprintf("the gateway does not know chat %s yet, or not any more: try again", h.Access.Chat)}
	}
	closed := g.config.Metrics.StreamOpened()
	err := g.listen(ctx, h, grant, watcher)
	reason := telemetry.StreamOver
	if closing, ok := errors.AsType[*stream.Closing](err); ok {
		reason = closing.Reason
	} else if ctx.Err() != nil {
		reason = telemetry.StreamLeft
	}
	closed(reason)
	return err
}

// listen follows a chat as long as the caller may.
func (g *Gateway) listen(ctx context.Context, h conduct.Hearing, grant auth.Grant, watcher *watcher) error {
	ctx, end := context.WithCancelCause(ctx)
	var holding sync.WaitGroup
	defer holding.Wait()
	defer end(nil)
	holding.Go(func() {
		again := func(ctx context.Context) (auth.Grant, *refusal.Error) {
			return g.config.Checker.Recheck(ctx, h.Token, h.Access)
		}
		if gone := g.lease.hold(ctx, grant, again); gone != nil {
			end(gone)
		}
	})
	chat := watcher.Latest()
	if chat == nil {
		return h.Send(stream.Event{Name: stream.EventDeleted, Data: []byte("{}")})
	}
	follower := follow.Follower{
		Chats: watcher, Messages: g.messages, Parts: g.relays, Memory: g.memory,
		Send: h.Send, KeepAlive: h.Alive, KeepAliveEvery: g.keepAlive,
	}
	if err := follower.Run(ctx, h.From(chat)); err != nil {
		return fmt.Errorf("following chat %s: %w", h.Access.Chat, err)
	}
	return nil
}

func starting() *refusal.Error {
	return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.Starting, RetryAfter: time.Second,
		Message: "the gateway is starting, try again"}
}
