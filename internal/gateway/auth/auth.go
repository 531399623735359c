// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth authenticates and authorizes listeners: TokenReview authenticates the bearer token, and
// SubjectAccessReview authorizes its user to get chats/stream of a chat, a subresource that exists only for this
// question, to list and watch the chats of a namespace, or to get its messages, which files belong to.
//
// Tokens have the audience token.Audience, so that a stolen one can only listen. Tokens of the API server are accepted
// as well if Options say so.
//
// Answers are cached under a hash of the token: ten seconds if they are positive, one second if not, so that a new
// permission works at once and a withdrawn one ends soon. No token is kept. The number of concurrent questions to the
// API server is limited, and none is asked about what cannot be a token.
package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/token"
	"parley.dev/parley/internal/netguard/limit"
)

const (
	// positiveTTL and negativeTTL are how long answers of the API server are cached.
	positiveTTL = 10 * time.Second
	negativeTTL = time.Second
	// maxAnswers and maxRefusals bound the positive and the negative answers to each of the two questions.
	maxAnswers  = 4096 - maxRefusals
	maxRefusals = 512
	// reviewTimeout bounds one question to the API server.
	reviewTimeout = 10 * time.Second
	// reviewWait is how long a question waits for those before it.
	reviewWait = 5 * time.Second
	// waitingPerReview is how many questions may wait for each that may be asked.
	waitingPerReview = 16
	// DefaultReviews is how many questions the API server is asked at the same time, unless Options say otherwise.
	DefaultReviews = 16
)

// Options are which tokens are accepted, and how many questions are asked at a time.
type Options struct {
	// APIServerTokens accepts tokens of the API server's own audience in addition to those of token.Audience. Such a token
	// can act as the caller, so a gateway that accepts them needs more protection.
	APIServerTokens bool
	// OpaqueTokens asks the API server also about tokens that are no JSON web tokens, as some clouds issue them. It does
	// nothing without APIServerTokens.
	OpaqueTokens bool
	// Reviews is how many questions the API server is asked at the same time; a quarter of them is reserved for open
	// streams. Default DefaultReviews.
	Reviews int
	// Now returns the current time.
	Now func() time.Time
}

// Access is what a caller wants to follow: a chat, or, if Chat is empty, the list of the namespace's chats.
type Access struct {
	Namespace, Chat string
	// Files is true for the files of the namespace's messages instead.
	Files bool
}

func (a Access) verbs() string {
	switch {
	case a.Files:
		return "get chatmessages"
	case a.Chat == "":
		return "list and watch chats"
	}
	return "get chats/stream"
}

// Grant is a permission to listen.
type Grant struct {
	// User is the caller's name.
	User string
	// At is when the API server was asked.
	At time.Time
	// Expires is when the token expires; zero if it has no such claim.
	Expires time.Time
}

// Checker asks the API server. It is safe for concurrent use.
type Checker struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	options Options
	// newcomers and known are the lanes of new callers and of those with open streams, so that many new callers end no
	// stream.
	newcomers, known *lane
	asking           singleflight.Group
	users            *answers[user]
	grants           *answers[bool]
}

// user is the owner of a token.
type user struct {
	known bool
	info  authenticationv1.UserInfo
}

// New makes a checker.
func New(tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface,
	options Options) *Checker {
	if options.Reviews <= 0 {
		options.Reviews = DefaultReviews
	}
	kept := max(1, options.Reviews/4)
	return &Checker{
		tokens: tokens, access: access, options: options,
		newcomers: newLane(max(1, options.Reviews-kept)), known: newLane(kept),
		users: newAnswers[user](options.Now), grants: newAnswers[bool](options.Now),
	}
}

// Permit authenticates a caller whose token the gateway is going to use at the API server, which authorizes the
// request.
func (c *Checker) Permit(ctx context.Context, bearer string) (caller string, refused *refusal.Error) {
	claims, audiences, refused := c.examine(bearer)
	switch {
	case bearer != "" && len(bearer) <= token.MaxBytes && !c.options.APIServerTokens:
		return "", denied("this gateway serves streams alone (--accept-api-server-tokens=false): use the API server")
	case refused != nil:
		return "", refused
	case claims.For(token.Audience) && len(claims.Audiences) == 1:
		return "", denied("a token of the audience %s is good for listening alone: use one that the API server accepts",
			token.Audience)
	}
	who, refused := c.about(c.newcomers, bearer).owner(ctx, bearer, audiences)
	return who.value.info.Username, refused
}

// Check asks whether a new caller may listen.
func (c *Checker) Check(ctx context.Context, bearer string, access Access) (Grant, *refusal.Error) {
	return c.check(ctx, c.newcomers, bearer, access)
}

// Recheck asks whether the caller of an open stream still may.
func (c *Checker) Recheck(ctx context.Context, bearer string, access Access) (Grant, *refusal.Error) {
	return c.check(ctx, c.known, bearer, access)
}

func (c *Checker) check(ctx context.Context, lane *lane, bearer string, access Access) (Grant, *refusal.Error) {
	claims, audiences, refused := c.examine(bearer)
	if refused != nil {
		return Grant{}, refused
	}
	q := c.about(lane, bearer)
	who, refused := q.owner(ctx, bearer, audiences)
	if refused != nil {
		return Grant{}, refused
	}
	grant := Grant{User: who.value.info.Username, At: who.asked, Expires: claims.Expires}
	for _, attributes := range access.attributes() {
		allowed, err := q.authorize(ctx, who.value.info, attributes)
		if err != nil {
			return Grant{}, unanswered("review access", err)
		}
		if !allowed.value {
			return Grant{}, denied("%s may not %s in namespace %s: ask for the ClusterRole parley-chat-viewer", grant.User,
				access.verbs(), access.Namespace)
		}
		if allowed.asked.Before(grant.At) {
			grant.At = allowed.asked
		}
	}
	return grant, nil
}

// examine refuses tokens without asking the API server, and finds the audiences to ask for: nil for the API server's
// own.
func (c *Checker) examine(bearer string) (token.Claims, []string, *refusal.Error) {
	if bearer == "" {
		return token.Claims{}, nil, unauthenticated("no bearer token: send the header \"Authorization: Bearer TOKEN\"")
	}
	claims, ok := token.Read(bearer)
	switch {
	case len(bearer) > token.MaxBytes:
		return claims, nil, unauthenticated("the token is longer than %d bytes", token.MaxBytes)
	case !ok && (!c.options.OpaqueTokens || !c.options.APIServerTokens):
		return claims, nil, unauthenticated("%s: ask for one with \"kubectl create token ACCOUNT\", or have the gateway run "+
			"with --accept-opaque-tokens", token.NotJWT)
	case !claims.Expires.IsZero() && !c.options.Now().Before(claims.Expires):
		return claims, nil, unauthenticated("the token has expired")
	case claims.For(token.Audience):
		return claims, []string{token.Audience}, nil
	case c.options.APIServerTokens:
		return claims, nil, nil
	}
	return claims, nil, unauthenticated("the token is not for the audience %s: ask for one with "+
		"\"kubectl create token ACCOUNT --audience=%[1]s\"", token.Audience)
}

// attributes are what a caller must be allowed to do.
func (a Access) attributes() []authorizationv1.ResourceAttributes {
	chats := authorizationv1.ResourceAttributes{
		Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version, Resource: "chats", Namespace: a.Namespace,
	}
	if a.Files {
		chats.Verb, chats.Resource = "get", "chatmessages"
		return []authorizationv1.ResourceAttributes{chats}
	}
	if a.Chat == "" {
		list, watch := chats, chats
		list.Verb, watch.Verb = "list", "watch"
		return []authorizationv1.ResourceAttributes{list, watch}
	}
	chats.Verb, chats.Subresource, chats.Name = "get", "stream", a.Chat
	return []authorizationv1.ResourceAttributes{chats}
}

// questions are the questions about one token.
type questions struct {
	*Checker
	lane *lane
	hash string
}

// about returns questions about a token, of which only a hash is kept.
func (c *Checker) about(lane *lane, bearer string) questions {
	hash := sha256.Sum256([]byte(bearer))
	return questions{Checker: c, lane: lane, hash: string(hash[:])}
}

// owner is the user of the token.
func (q questions) owner(ctx context.Context, bearer string, audiences []string) (answer[user], *refusal.Error) {
	who, err := q.authenticate(ctx, bearer, audiences)
	switch {
	case err != nil:
		return answer[user]{}, unanswered("review a token", err)
	case !who.value.known:
		return answer[user]{}, unauthenticated("the cluster does not know this token, or it has expired")
	}
	return who, nil
}

func (q questions) authenticate(ctx context.Context, bearer string, audiences []string) (answer[user], error) {
	return ask(ctx, q, q.users, q.hash, func(ctx context.Context) (user, bool, error) {
		review, err := q.tokens.Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: bearer, Audiences: audiences},
		}, metav1.CreateOptions{})
		if err != nil {
			return user{}, false, err
		}
		// An authenticator without support for audiences returns none.
		good := review.Status.Authenticated &&
			(len(audiences) == 0 || slices.Contains(review.Status.Audiences, token.Audience))
		return user{known: good, info: review.Status.User}, good, nil
	})
}

func (q questions) authorize(ctx context.Context, who authenticationv1.UserInfo,
	attributes authorizationv1.ResourceAttributes) (answer[bool], error) {
	key := q.hash + "/" + attributes.Verb + "/" + attributes.Resource + "/" + attributes.Namespace + "/" + attributes.Name
	return ask(ctx, q, q.grants, key, func(ctx context.Context) (allowed, positive bool, err error) {
		extra := make(map[string]authorizationv1.ExtraValue, len(who.Extra))
		for k, v := range who.Extra {
			extra[k] = authorizationv1.ExtraValue(v)
		}
		review, err := q.access.Create(ctx,
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra, ResourceAttributes: &attributes,
			}}, metav1.CreateOptions{})
		if err != nil {
			return false, false, err
		}
		return review.Status.Allowed, review.Status.Allowed, nil
	})
}

// ask returns a cached answer, or asks once for all callers that ask at the same time.
func ask[V any](ctx context.Context, q questions, known *answers[V], key string,
	question func(context.Context) (V, bool, error)) (answer[V], error) {
	if v, ok := known.get(key); ok {
		return v, nil
	}
	flight := key
	if q.lane == q.known {
		flight = "again/" + key
	}
	return limit.Shared(ctx, &q.asking, flight, reviewTimeout, func(ctx context.Context) (answer[V], error) {
		leave, err := q.lane.enter(ctx)
		if err != nil {
			return answer[V]{}, err
		}
		defer leave()
		v := answer[V]{asked: q.options.Now()}
		var positive bool
		if v.value, positive, err = question(ctx); err == nil {
			known.put(key, v, positive)
		}
		return v, err
	})
}

// answers caches a limited number of answers of the API server. Negative ones have a cache of their own, since anyone
// can cause them.
type answers[V any] struct {
	now                func() time.Time
	positive, negative *cache.LRUExpireCache
}

// answer is the answer of the API server to a question that was asked at a time.
type answer[V any] struct {
	value V
	asked time.Time
}

// clock is the time for a cache.
type clock func() time.Time

// Now implements cache.Clock.
func (c clock) Now() time.Time { return c() }

func newAnswers[V any](now func() time.Time) *answers[V] {
	return &answers[V]{
		now:      now,
		positive: cache.NewLRUExpireCacheWithClock(maxAnswers, clock(now)),
		negative: cache.NewLRUExpireCacheWithClock(maxRefusals, clock(now)),
	}
}

func (a *answers[V]) get(key string) (answer[V], bool) {
	for _, known := range []*cache.LRUExpireCache{a.positive, a.negative} {
		if found, ok := known.Get(key); ok {
			return found.(answer[V]), true
		}
	}
	return answer[V]{}, false
}

// put caches the newest answer, from the time at which it was asked for.
func (a *answers[V]) put(key string, v answer[V], positive bool) {
	known, other, ttl := a.negative, a.positive, negativeTTL
	if positive {
		known, other, ttl = a.positive, a.negative, positiveTTL
	}
	other.Remove(key)
	known.Add(key, v, ttl-a.now().Sub(v.asked))
}

func unauthenticated(format string, args ...any) *refusal.Error {
	return &refusal.Error{Status: http.StatusUnauthorized, Reason: refusal.Unauthorized,
		Message: fmt.Sprintf(format, args...)}
}

func denied(format string, args ...any) *refusal.Error {
	return &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden, Message: fmt.Sprintf(format, args...)}
}

// unanswered is a refusal for callers that are not authenticated: what went wrong is in the log only.
func unanswered(what string, err error) *refusal.Error {
	if errors.Is(err, errBusy) {
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.Overloaded, RetryAfter: time.Second,
			Message: "too many callers ask at the same time, try again"}
	}
	return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.APIServerUnavailable,
		RetryAfter: 2 * time.Second,
		Message:    "the API server does not say who may listen, try again", Cause: fmt.Errorf("%s: %w", what, err)}
}
