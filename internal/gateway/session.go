// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"sync"
	"time"

	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/netguard/limit"
)

// session is a caller that may follow a chat or list the chats of a namespace, and has a seat for it.
type session struct {
	gateway *Gateway
	token   string
	access  auth.Access
	grant   auth.Grant
	// lease is that of the open stream.
	lease *limit.Lease
}

// admit lets a caller listen, or says why not.
func (g *Gateway) admit(ctx context.Context, token string, access auth.Access) (*session, *refusal.Error) {
	grant, refused := g.config.Checker.Check(ctx, token, access)
	if refused != nil {
		return nil, refused
	}
	if !g.Synced() {
		return nil, starting()
	}
	s := &session{gateway: g, token: token, access: access, grant: grant, lease: g.streams.Lease(grant.User)}
	return s, refusal.Limited(s.lease.Grow(1), grant.User, "open streams", refusal.TooManyStreams, 10*time.Second)
}

// whilePermitted returns a context that is cancelled when the caller may not listen any more, with a *stream.Closing as
// its cause. Stop ends the checks.
func (s *session) whilePermitted(ctx context.Context) (permitted context.Context, stop func()) {
	permitted, cancel := context.WithCancelCause(ctx)
	recheck := func(ctx context.Context) (auth.Grant, *refusal.Error) {
		return s.gateway.config.Checker.Recheck(ctx, s.token, s.access)
	}
	var checking sync.WaitGroup
	checking.Go(func() {
		if gone := s.gateway.lease.hold(permitted, s.grant, recheck); gone != nil {
			cancel(gone)
		}
	})
	return permitted, func() {
		cancel(nil)
		checking.Wait()
	}
}
