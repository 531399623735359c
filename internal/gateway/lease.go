// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/netguard/limit"
)

const (
	// recheckEvery is how often the permission is checked, less up to a third, so that streams that began together are not
	// checked together. Answers are cached for ten seconds here and in the API server each, so a withdrawn permission
	// ends its streams within a minute.
	recheckEvery = 30 * time.Second
	// recheckAgain is the pause after which it is checked again if the API server did not answer.
	recheckAgain = 5 * time.Second
	// recheckPatience is how long a stream lasts after the API server last confirmed the permission.
	recheckPatience = time.Minute
)

// lease is how long a permission to listen lasts.
type lease struct {
	every, again, patience time.Duration
	now                    func() time.Time
}

// recheck asks again whether the caller may listen.
type recheck func(context.Context) (auth.Grant, *refusal.Error)

// hold returns when the permission has ended, with the reason, or nil once ctx is done.
func (l lease) hold(ctx context.Context, grant auth.Grant, ask recheck) *stream.Closing {
	wait := l.jittered()
	for {
		until := l.end(grant)
		timer := time.NewTimer(min(wait, until.Sub(l.now())))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if ended := l.ended(grant); ended != nil {
			return ended
		}
		asking, cancel := context.WithDeadline(ctx, until)
		again, refused := ask(asking)
		cancel()
		switch {
		case refused == nil:
			grant, wait = again, l.jittered()
		case refused.Denied():
			if ended := l.ended(grant); ended != nil {
				return ended
			}
			return &stream.Closing{Reason: stream.ClosingWithdrawn, Message: withdrawn(refused)}
		default: // Also if the stream has ended: the next turn of the loop returns.
			wait = l.again
		}
	}
}

// end is when the permission ends unless the API server renews it.
func (l lease) end(grant auth.Grant) time.Time {
	end := grant.At.Add(l.patience)
	if !grant.Expires.IsZero() && grant.Expires.Before(end) {
		return grant.Expires
	}
	return end
}

// ended is why the permission has ended; nil if it has not.
func (l lease) ended(grant auth.Grant) *stream.Closing {
	switch now := l.now(); {
	case !grant.Expires.IsZero() && !now.Before(grant.Expires):
		return &stream.Closing{Reason: stream.ClosingExpired, Message: "the token has expired: come back with another one"}
	case !now.Before(grant.At.Add(l.patience)):
		return &stream.Closing{Reason: stream.ClosingUnverified,
			Message: "the authorization could not be checked again for one minute: reconnect"}
	}
	return nil
}

func (l lease) jittered() time.Duration {
	return l.every - rand.N(max(1, l.every/3)) // It need not be secret.
}

func withdrawn(refused *refusal.Error) string {
	if refused.Status == http.StatusUnauthorized {
		return "the API server no longer accepts the token"
	}
	return refused.Message
}

// session is a caller that may follow a chat or list the chats of a namespace, and whose stream is counted.
type session struct {
	gateway *Gateway
	token   string
	access  auth.Access
	grant   auth.Grant
	// lease is that of the open stream.
	lease *limit.Lease
}

// admit authorizes a caller to listen and counts its stream.
func (g *Gateway) admit(ctx context.Context, token string, access auth.Access) (*session, *refusal.Error) {
	grant, refused := g.config.Checker.Check(ctx, token, access)
	if refused != nil {
		return nil, refused
	}
	if refused := g.refusesNamespace(access.Namespace); refused != nil {
		return nil, refused
	}
	if !g.syncedIn(access.Namespace) {
		return nil, &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.Starting,
			RetryAfter: time.Second, Message: "the gateway is starting, try again"}
	}
	s := &session{gateway: g, token: token, access: access, grant: grant, lease: g.streams.Lease(grant.User)}
	return s, refusal.Limited(s.lease.Grow(1), grant.User, "open streams", refusal.TooManyStreams, 10*time.Second)
}

// whilePermitted returns a context that is cancelled when the caller may no longer listen, with a *stream.Closing as
// its cause. Stop ends the checks.
func (s *session) whilePermitted(ctx context.Context) (permitted context.Context, stop func()) {
	permitted, cancel := context.WithCancelCause(ctx)
	recheck := func(ctx context.Context) (auth.Grant, *refusal.Error) {
		return s.gateway.config.Checker.Recheck(ctx, s.token, s.access)
	}
	var checking sync.WaitGroup
	checking.Go(func() {
		if ended := s.gateway.lease.hold(permitted, s.grant, recheck); ended != nil {
			cancel(ended)
		}
	})
	return permitted, func() {
		cancel(nil)
		checking.Wait()
	}
}
