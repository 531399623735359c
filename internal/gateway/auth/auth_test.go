// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/token"
	"parley.dev/parley/test/kit/check"
)

// apiServer answers reviews as a test says, and remembers what it was asked.
type apiServer struct {
	authenticationclient.TokenReviewInterface

	mu      sync.Mutex
	asked   []authenticationv1.TokenReviewSpec
	access  []string
	atOnce  int
	most    int
	err     error
	down    error // of the access reviews
	denied  bool
	unknown bool          // it knows no token
	unaware bool          // it knows nothing of audiences
	hold    chan struct{} // closed: it answers
}

func (a *apiServer) Create(ctx context.Context, review *authenticationv1.TokenReview,
	_ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	a.mu.Lock()
	a.asked = append(a.asked, review.Spec)
	a.atOnce++
	a.most = max(a.most, a.atOnce)
	err, hold := a.err, a.hold
	a.mu.Unlock()
	defer func() { a.mu.Lock(); a.atOnce--; a.mu.Unlock() }()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	review.Status.Authenticated = !a.unknown
	review.Status.User.Username = "jane"
	if !a.unaware {
		review.Status.Audiences = review.Spec.Audiences
	}
	return review, nil
}

type accesses struct {
	authorizationclient.SubjectAccessReviewInterface
	server *apiServer
}

func (a accesses) Create(_ context.Context, review *authorizationv1.SubjectAccessReview,
	_ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	at := review.Spec.ResourceAttributes
	a.server.access = append(a.server.access,
		strings.TrimSuffix(fmt.Sprintf("%s %s/%s %s/%s", at.Verb, at.Resource, at.Subresource, at.Namespace, at.Name), "/"))
	review.Status.Allowed = !a.server.denied
	return review, a.server.down
}

func (a *apiServer) checker(options Options) *Checker {
	options.Now = time.Now
	return New(a, accesses{server: a}, options)
}

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + ".c2lnbmF0dXJl"
}

// tokenNumber is one of many good tokens.
func tokenNumber(i int) string { return jwt(fmt.Sprintf(`{"aud":"parley-gateway","jti":"%d"}`, i)) }

var (
	ours   = jwt(`{"aud":["parley-gateway"]}`)
	theirs = jwt(`{"aud":["https://kubernetes.default.svc"]}`)
	chat   = Access{Namespace: "demo", Chat: "c"}
)

func TestOnlyPossibleTokensAreReviewed(t *testing.T) {
	tests := map[string]struct {
		bearer    string
		options   Options
		audiences []string
		asked     bool
		message   string
	}{
		"no token": {"", Options{APIServerTokens: true}, nil, false, "no bearer token"},
		"a word":   {"nonsense", Options{APIServerTokens: true}, nil, false, "no JSON web token"},
		"a word, where opaque tokens are used": {"k8s-aws-v1.aHR0cHM6Ly9zdHM",
			Options{APIServerTokens: true, OpaqueTokens: true}, nil, true, ""},
		"a word, where only ours are taken": {"nonsense", Options{OpaqueTokens: true}, nil, false, "no JSON web token"},
		"far too long": {strings.Repeat("x", 1<<20), Options{APIServerTokens: true, OpaqueTokens: true},
			nil, false, "longer than 16384 bytes"},
		"ours": {ours, Options{}, []string{token.Audience}, true, ""},
		"ours among others": {jwt(`{"aud":["a","parley-gateway"]}`), Options{APIServerTokens: true},
			[]string{token.Audience}, true, ""},
		"the API server's":                  {theirs, Options{APIServerTokens: true}, nil, true, ""},
		"the API server's, where only ours": {theirs, Options{}, nil, false, "not for the audience parley-gateway"},
		"an old one": {jwt(`{"aud":["parley-gateway"],"exp":1000}`), Options{}, nil, false,
			"has expired"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := &apiServer{}
			_, refused := server.checker(tt.options).Check(t.Context(), tt.bearer, chat)
			if (refused == nil) != (tt.message == "") || refused != nil && (refused.Status != http.StatusUnauthorized ||
				!strings.Contains(refused.Message, tt.message)) {
				t.Errorf("got %v, want %q", refused, tt.message)
			}
			if refused != nil && tt.bearer != "" && strings.Contains(refused.Message, tt.bearer) {
				t.Error("the refusal quotes the token")
			}
			if asked := len(server.asked) == 1; asked != tt.asked || asked &&
				!slices.Equal(server.asked[0].Audiences, tt.audiences) {
				t.Errorf("asked %d times, %+v", len(server.asked), server.asked)
			}
		})
	}
}

func TestReviewWithoutAudiencesProvesNothing(t *testing.T) {
	server := &apiServer{unaware: true}
	if _, refused := server.checker(Options{}).Check(t.Context(), ours, chat); refused == nil ||
		refused.Status != http.StatusUnauthorized {
		t.Errorf("got %v", refused)
	}
}

func TestWhatIsAskedIsWhatIsHeard(t *testing.T) {
	for want, access := range map[string]Access{
		"get chats/stream demo/c":             chat,
		"list chats/ demo, watch chats/ demo": {Namespace: "demo"},
	} {
		server := &apiServer{}
		grant, refused := server.checker(Options{}).Check(t.Context(), ours, access)
		if got := strings.Join(server.access, ", "); refused != nil || got != want || grant.User != "jane" {
			t.Errorf("asked %q, got %+v, %v, want %q", got, grant, refused, want)
		}
		server = &apiServer{denied: true}
		if _, refused := server.checker(Options{}).Check(t.Context(), ours, access); refused == nil ||
			refused.Status != http.StatusForbidden {
			t.Errorf("got %v", refused)
		}
	}
}

func TestGrantTimeIsThatOfItsCachedReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{}
		checker, begin := server.checker(Options{}), time.Now()
		expiring := jwt(fmt.Sprintf(`{"aud":"parley-gateway","exp":%d}`, begin.Add(time.Hour).Unix()))
		for _, step := range []struct {
			after time.Duration
			at    time.Duration
			asked int
		}{{0, 0, 1}, {9 * time.Second, 0, 1}, {2 * time.Second, 11 * time.Second, 2}} {
			<-time.After(step.after)
			grant, refused := checker.Check(t.Context(), expiring, chat)
			if refused != nil || grant.At.Sub(begin) != step.at || len(server.asked) != step.asked ||
				!grant.Expires.Equal(begin.Add(time.Hour).Truncate(time.Second)) {
				t.Errorf("%+v: got %+v, %v after %d questions", step, grant, refused, len(server.asked))
			}
		}
		<-time.After(time.Hour)
		if _, refused := checker.Recheck(t.Context(), expiring, chat); refused == nil || !refused.Denied() {
			t.Errorf("after its end: %v", refused)
		}
	})
}

func TestCrowdOfNewcomersEndsNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{hold: make(chan struct{})}
		checker := server.checker(Options{})
		var crowd sync.WaitGroup
		var mu sync.Mutex
		reasons := map[string]int{}
		for i := range 1000 {
			crowd.Go(func() {
				_, refused := checker.Check(t.Context(), tokenNumber(i), chat)
				mu.Lock()
				defer mu.Unlock()
				if refused == nil {
					reasons[""]++
					return
				}
				reasons[refused.Reason]++
				if refused.Status != http.StatusServiceUnavailable || refused.RetryAfter <= 0 || refused.Denied() {
					t.Errorf("got %+v", refused)
				}
			})
		}
		synctest.Wait()
		check.Equal(t, "questions at once", 12, server.most)
		if mu.Lock(); reasons[refusal.Overloaded] != 1000-12*17 {
			t.Errorf("refused at once: %v", reasons)
		}
		mu.Unlock()
		server.mu.Lock()
		server.hold, server.atOnce = nil, 0
		server.mu.Unlock()
		if _, refused := checker.Recheck(t.Context(), ours, chat); refused != nil {
			t.Errorf("one who is here: %v", refused)
		}
		crowd.Wait()
		if reasons[""] != 0 || reasons[refusal.Overloaded] != 1000-12 || reasons[refusal.APIServerUnavailable] != 12 {
			t.Errorf("in the end: %v", reasons)
		}
	})
}

func TestRefusalSaysNothingOfTheInside(t *testing.T) {
	server := &apiServer{
		err: errors.New(
			`Post "https://10.96.0.1:443/apis/authentication.k8s.io/v1/tokenreviews": dial tcp 10.96.0.1:443: connect: connection refused`)}
	_, refused := server.checker(Options{}).Check(t.Context(), ours, chat)
	if refused == nil || refused.Status != http.StatusServiceUnavailable ||
		refused.Reason != refusal.APIServerUnavailable {
		t.Fatalf("got %+v", refused)
	}
	if strings.Contains(refused.Message, "10.") || strings.Contains(refused.Message, "tcp") ||
		!errors.Is(refused, server.err) {
		t.Errorf("it says %q, cause %v", refused.Message, refused.Cause)
	}
}

func TestBadAnswersTakeNoRoomFromGoodOnes(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	known := newAnswers[bool](func() time.Time { return now })
	known.put("good", answer[bool]{value: true, asked: now}, true)
	for i := range 2 * maxAnswers {
		known.put(fmt.Sprint(i), answer[bool]{asked: now}, false)
	}
	if _, ok := known.get("good"); !ok {
		t.Error("the good answer is gone")
	}
	for i := range 2 * maxAnswers {
		known.put(fmt.Sprint(i), answer[bool]{value: true, asked: now}, true)
	}
	if n := len(known.positive.Keys()) + len(known.negative.Keys()); n > 4096 {
		t.Errorf("%d answers are known", n)
	}
}

func TestAnswerCountsFromWhenItWasAskedFor(t *testing.T) {
	asked := time.Unix(1_800_000_000, 0)
	now := asked
	for name, c := range map[string]struct {
		came     time.Duration // the answer, after it was asked for
		positive bool
		later    time.Duration // after it was asked for
		want     bool
	}{
		"a good one":                         {0, true, 9 * time.Second, true},
		"a good one, ten seconds on":         {0, true, 11 * time.Second, false},
		"a good one that came late":          {8 * time.Second, true, 9 * time.Second, true},
		"a good one that came late, soon on": {8 * time.Second, true, 11 * time.Second, false},
		"a bad one":                          {0, false, time.Second / 2, true},
		"a bad one, a second on":             {0, false, 2 * time.Second, false},
		"a bad one that came too late":       {2 * time.Second, false, 2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := newAnswers[bool](func() time.Time { return now })
			now = asked
			known.put("q", answer[bool]{value: !c.positive, asked: now}, !c.positive) // It does not count any more.
			now = asked.Add(c.came)
			known.put("q", answer[bool]{value: c.positive, asked: asked}, c.positive)
			now = asked.Add(c.later)
			if got, ok := known.get("q"); ok != c.want || ok && got.value != c.positive {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
}
