// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
)

const (
	// recheckEvery is how often the right to a stream is checked while it lasts, less up to a third, so that streams that
	// began together are not checked together. With the ten seconds that answers count here and in the API server each, a
	// right that was withdrawn ends its streams within a minute.
	recheckEvery = 30 * time.Second
	// recheckAgain is how soon it is checked again when the API server gave no answer.
	recheckAgain = 5 * time.Second
	// recheckPatience is how long a stream outlives the API server's last yes.
	recheckPatience = time.Minute
)

// lease says how long leave to listen lasts.
type lease struct {
	every, again, patience time.Duration
	now                    func() time.Time
}

// recheck asks once more whether the caller may listen.
type recheck func(context.Context) (auth.Grant, *refusal.Error)

// hold returns when the leave is gone, with the reason why, or nil once ctx is done.
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
		if gone := l.gone(grant, l.now()); gone != nil {
			return gone
		}
		asking, cancel := context.WithDeadline(ctx, until)
		again, refused := ask(asking)
		cancel()
		switch {
		case refused == nil:
			grant, wait = again, l.jittered()
		case refused.Denied():
			if gone := l.gone(grant, l.now()); gone != nil {
				return gone
			}
			return &stream.Closing{Reason: stream.ClosingWithdrawn, Message: withdrawn(refused)}
		default: // Also if the stream has ended, which is noticed at once.
			wait = l.again
		}
	}
}

// end is when the leave ends unless the API server renews it.
func (l lease) end(grant auth.Grant) time.Time {
	end := grant.At.Add(l.patience)
	if !grant.Expires.IsZero() && grant.Expires.Before(end) {
		return grant.Expires
	}
	return end
}

// gone says why the leave has ended at a time; nil if it has not.
func (l lease) gone(grant auth.Grant, now time.Time) *stream.Closing {
	switch {
	case !grant.Expires.IsZero() && !now.Before(grant.Expires):
		return &stream.Closing{Reason: stream.ClosingExpired, Message: "the token has expired: come back with another one"}
	case !now.Before(grant.At.Add(l.patience)):
		return &stream.Closing{Reason: stream.ClosingUnverified,
			Message: "the authorization could not be checked again for one minute: reconnect"}
	}
	return nil
}

func (l lease) jittered() time.Duration {
	return l.every - rand.N(max(1, l.every/3)) // It spreads questions, and hides nothing.
}

func withdrawn(refused *refusal.Error) string {
	if refused.Status == http.StatusUnauthorized {
		return "the API server no longer accepts the token"
	}
	return refused.Message
}
