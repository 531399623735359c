// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/refusal"
)

func TestLeaseEndsWhenTokenOrPermissionEnds(t *testing.T) {
	yes := func(begin time.Time) recheck {
		return func(context.Context) (auth.Grant, *refusal.Error) {
			return auth.Grant{At: time.Now(), Expires: begin.Add(10 * time.Minute)}, nil
		}
	}
	silent := func(ctx context.Context) (auth.Grant, *refusal.Error) {
		<-ctx.Done()
		return auth.Grant{}, &refusal.Error{Status: http.StatusServiceUnavailable, Message: "no answer"}
	}
	tests := map[string]struct {
		ask           func(begin time.Time) recheck
		want          string
		after, atMost time.Duration
	}{
		"as long as the API server says yes, until the token expires": {yes, stream.ClosingExpired, 10 * time.Minute,
			10 * time.Minute},
		"when the right is withdrawn": {func(begin time.Time) recheck {
			return func(ctx context.Context) (auth.Grant, *refusal.Error) {
				if time.Since(begin) < 5*time.Minute {
					return yes(begin)(ctx)
				}
				return auth.Grant{}, &refusal.Error{Status: http.StatusForbidden, Message: "no"}
			}
		}, stream.ClosingWithdrawn, 5 * time.Minute, 5*time.Minute + 30*time.Second},
		"a minute after the last yes, if the API server is silent": {func(begin time.Time) recheck {
			return func(ctx context.Context) (auth.Grant, *refusal.Error) {
				if time.Since(begin) < 45*time.Second {
					return yes(begin)(ctx)
				}
				return silent(ctx)
			}
		}, stream.ClosingUnverified, 80 * time.Second, 105 * time.Second},
		"not because the API server was away for a moment": {func(begin time.Time) recheck {
			return func(ctx context.Context) (auth.Grant, *refusal.Error) {
				if since := time.Since(begin); since > 40*time.Second && since < 60*time.Second {
					return auth.Grant{}, &refusal.Error{Status: http.StatusServiceUnavailable}
				}
				return yes(begin)(ctx)
			}
		}, stream.ClosingExpired, 10 * time.Minute, 10 * time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				held := lease{every: recheckEvery, again: recheckAgain, patience: recheckPatience, now: time.Now}
				got := held.hold(t.Context(), auth.Grant{At: begin, Expires: begin.Add(10 * time.Minute)}, tt.ask(begin))
				if after := time.Since(begin); got == nil || got.Reason != tt.want || after < tt.after || after > tt.atMost {
					t.Errorf("ended after %s with %v, want %s between %s and %s", after, got, tt.want, tt.after, tt.atMost)
				}
			})
		})
	}
}

func TestLeaseEndsWithItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		held := lease{every: time.Hour, again: time.Second, patience: 2 * time.Hour, now: time.Now}
		if got := held.hold(ctx, auth.Grant{At: time.Now()}, nil); got != nil {
			t.Errorf("it ended with %v", got)
		}
	})
}
