// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/internal/gateway/refusal"
)

func TestAPIServerDecisionIsCachedUntilExpiry(t *testing.T) {
	gone := errors.New("connect: connection refused")
	for name, c := range map[string]struct {
		server *apiServer
		status int
		reason string
		// keeps is how long the answer counts; then the API server, which says yes by now, is asked again.
		keeps time.Duration
	}{
		"it says yes":                {&apiServer{}, 0, "", positiveTTL},
		"it does not know the token": {&apiServer{unknown: true}, http.StatusUnauthorized, refusal.Unauthorized, negativeTTL},
		"it denies the right":        {&apiServer{denied: true}, http.StatusForbidden, refusal.Forbidden, negativeTTL},
		"it reviews no tokens for now": {&apiServer{err: gone}, http.StatusServiceUnavailable,
			refusal.APIServerUnavailable, 0},
		"it reviews no rights for now": {&apiServer{down: gone}, http.StatusServiceUnavailable,
			refusal.APIServerUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				checker := c.server.checker(Options{})
				// Those who come and those who are here hear the same.
				for _, check := range []func() *refusal.Error{
					func() *refusal.Error { _, refused := checker.Check(t.Context(), ours, chat); return refused },
					func() *refusal.Error { _, refused := checker.Recheck(t.Context(), ours, chat); return refused },
				} {
					refused := check()
					if (refused == nil) != (c.status == 0) ||
						refused != nil && (refused.Status != c.status || refused.Reason != c.reason ||
							refused.Denied() != (c.keeps > 0)) {
						t.Fatalf("got %+v", refused)
					}
				}
				questions := len(c.server.asked) + len(c.server.access)
				*c.server = apiServer{}
				if c.keeps > 0 {
					<-time.After(c.keeps - 1)
					if _, refused := checker.Check(t.Context(), ours, chat); (refused == nil) != (c.status == 0) {
						t.Errorf("within %v it gets %+v", c.keeps, refused)
					}
					if n := len(c.server.asked) + len(c.server.access); n != 0 || questions > 2 {
						t.Errorf("%d questions were asked, and %d once the answer was known", questions, n)
					}
					<-time.After(2)
				}
				if _, refused := checker.Check(t.Context(), ours, chat); refused != nil {
					t.Errorf("after %v it gets %+v", c.keeps, refused)
				}
				if n := len(c.server.asked) + len(c.server.access); n == 0 {
					t.Error("an old answer counts")
				}
			})
		})
	}
}

func TestRememberedAnswersAreBounded(t *testing.T) {
	for name, server := range map[string]*apiServer{"yes": {}, "no": {denied: true}, "who?": {unknown: true}} {
		t.Run(name, func(t *testing.T) {
			checker := server.checker(Options{})
			for i := range 2 * (maxAnswers + maxRefusals) {
				_, _ = checker.Check(t.Context(), tokenNumber(i), chat)
			}
			users := len(checker.users.positive.Keys()) + len(checker.users.negative.Keys())
			grants := len(checker.grants.positive.Keys()) + len(checker.grants.negative.Keys())
			if users > maxAnswers+maxRefusals || grants > maxAnswers+maxRefusals || users == 0 {
				t.Errorf("%d users and %d grants are remembered", users, grants)
			}
		})
	}
}
