// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth decides who may listen: a bearer token is shown to the API server (TokenReview), and whom it belongs to
// must be allowed (SubjectAccessReview) to get chats/stream of a chat, a subresource that exists for this question
// alone, or, for the list of a namespace's chats, to list and to watch its chats.
//
// Tokens are for the audience token.Audience, so that whoever gets hold of one can listen and do nothing else. Those
// that the API server takes are taken too, where Options say so.
//
// Answers are remembered briefly, under a hash of the token: ten seconds if they are good, one if they are not, so that
// a right that was just granted works at once and one that was withdrawn ends soon. No token is kept. The API server is
// asked a bounded number of questions at a time, and none about what cannot be a token.
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
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/gateway/token"
)

const (
	// positiveTTL and negativeTTL are how long an answer of the API server counts.
	positiveTTL = 10 * time.Second
	negativeTTL = time.Second
	// maxAnswers and maxRefusals bound the positive and the negative ones to each of the two questions.
	maxAnswers  = 4096 - maxRefusals
	maxRefusals = 512
	// reviewTimeout bounds one question to the API server.
	reviewTimeout = 10 * time.Second
)

// Options say which tokens are taken, and how many questions are asked at a time.
type Options struct {
	// APIServerTokens takes tokens of the API server's own audience besides those of token.Audience. Who has one can act
	// as the caller, so a gateway that takes them is worth more to a thief.
	APIServerTokens bool
	// OpaqueTokens asks the API server also about tokens that are no JSON web tokens, as some clouds hand them out. It
	// does nothing without APIServerTokens.
	OpaqueTokens bool
	// Reviews is how many questions the API server is asked at the same time; a quarter of them is kept for streams that
	// are open. Default DefaultReviews.
	Reviews int
	// Now returns the current time.
	Now func() time.Time
}

// Access is what a caller wants to hear: a chat, or, if Chat is empty, the list of the namespace's chats.
type Access struct {
	Namespace, Chat string
}

func (a Access) wanted() string {
	if a.Chat == "" {
		return "list and watch chats"
	}
	return "get chats/stream"
}

// Grant is leave to listen.
type Grant struct {
	// User is the caller's name.
	User string
	// At is when the API server was asked, and said yes.
	At time.Time
	// Expires is when the token ceases to be good; zero if it does not say.
	Expires time.Time
}

// Checker asks the API server. It is safe for concurrent use.
type Checker struct {
	tokens  authenticationclient.TokenReviewInterface
	access  authorizationclient.SubjectAccessReviewInterface
	options Options
	// newcomers and known are where questions about those who come and those who are here are asked, so that a crowd at
	// the door ends no stream.
	newcomers, known *lane
	asking           singleflight.Group
	users            *answers[user]
	grants           *answers[bool]
}

// user is whom a token belongs to.
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

// Permit says whose token it is with which a request is to be made at the API server, or why none is made. What the
// token is good for, the API server says then.
func (c *Checker) Permit(ctx context.Context, bearer string) (caller string, refused *refusal.Error) {
	claims, audiences, refused := c.examine(bearer)
	switch {
	case bearer != "" && len(bearer) <= token.MaxBytes && !c.options.APIServerTokens:
		return "", notPermitted("this gateway serves streams alone (--accept-api-server-tokens=false): use the API server")
	case refused != nil:
		return "", refused
	case claims.For(token.Audience) && len(claims.Audiences) == 1:
		return "", notPermitted(fmt.Sprintf("a token of the audience %s is good for listening alone: use one that the API "+
			"server accepts", token.Audience))
	}
	who, refused := c.about(c.newcomers, bearer).owner(ctx, bearer, audiences)
	return who.value.info.Username, refused
}

func notPermitted(message string) *refusal.Error {
	return &refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden, Message: message}
}

// Check asks whether somebody who comes may listen.
func (c *Checker) Check(ctx context.Context, bearer string, access Access) (Grant, *refusal.Error) {
	return c.check(ctx, c.newcomers, bearer, access)
}

// Recheck asks whether somebody who listens still may.
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
			return Grant{}, forbidden(who.value.info.Username, access)
		}
		if allowed.asked.Before(grant.At) {
			grant.At = allowed.asked
		}
	}
	return grant, nil
}

// examine refuses what needs no question, and finds the audiences to ask for: nil for the API server's own.
func (c *Checker) examine(bearer string) (token.Claims, []string, *refusal.Error) {
	if bearer == "" {
		return token.Claims{}, nil, unauthenticated("no bearer token: send the header \"Authorization: Bearer TOKEN\"")
	}
	claims, ok := token.Read(bearer)
	switch {
	case len(bearer) > token.MaxBytes:
		return claims, nil, unauthenticated(fmt.Sprintf("the token is longer than %d bytes", token.MaxBytes))
	case !ok && (!c.options.OpaqueTokens || !c.options.APIServerTokens):
		return claims, nil, unauthenticated("the token is no JSON web token")
	case !claims.Expires.IsZero() && !c.options.Now().Before(claims.Expires):
		return claims, nil, unauthenticated("the token has expired")
	case claims.For(token.Audience):
		return claims, []string{token.Audience}, nil
	case c.options.APIServerTokens:
		return claims, nil, nil
	}
	return claims, nil,
		unauthenticated(
			fmt.Sprintf("the token is not for the audience %s: ask for one with \"kubectl create token ACCOUNT --audience=%s\"",
				token.Audience, token.Audience))
}

// attributes are what a caller must be allowed.
func (a Access) attributes() []authorizationv1.ResourceAttributes {
	chats := authorizationv1.ResourceAttributes{
		Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: "chats", Namespace: a.Namespace,
	}
	if a.Chat == "" {
		list, watch := chats, chats
		list.Verb, watch.Verb = "list", "watch"
		return []authorizationv1.ResourceAttributes{list, watch}
	}
	chats.Verb, chats.Subresource, chats.Name = "get", "stream", a.Chat
	return []authorizationv1.ResourceAttributes{chats}
}

// questions are those about one token.
type questions struct {
	*Checker
	lane *lane
	hash string
}

// about are questions about a token, of which a hash alone is kept.
func (c *Checker) about(lane *lane, bearer string) questions {
	hash := sha256.Sum256([]byte(bearer))
	return questions{Checker: c, lane: lane, hash: string(hash[:])}
}

// owner is whom the token belongs to.
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
		// An authenticator that knows nothing of audiences names none.
		good := review.Status.Authenticated &&
			(len(audiences) == 0 || slices.Contains(review.Status.Audiences, token.Audience))
		return user{known: good, info: review.Status.User}, good, nil
	})
}

func (q questions) authorize(ctx context.Context, who authenticationv1.UserInfo,
	attributes authorizationv1.ResourceAttributes) (answer[bool], error) {
	key := q.hash + "/" + attributes.Verb + "/" + attributes.Namespace + "/" + attributes.Name
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

// ask returns a remembered answer, or asks once for all who ask at the same time. Who asks may go away; the question is
// then answered for the others.
func ask[V any](ctx context.Context, q questions, known *answers[V], key string,
	question func(context.Context) (V, bool, error)) (answer[V], error) {
	if v, ok := known.get(key); ok {
		return v, nil
	}
	flight := key
	if q.lane == q.known {
		flight = "again/" + key
	}
	result := q.asking.DoChan(flight, func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		leave, err := q.lane.enter(asking)
		if err != nil {
			return nil, err
		}
		defer leave()
		v := answer[V]{asked: q.options.Now()}
		var positive bool
		if v.value, positive, err = question(asking); err == nil {
			known.put(key, v, positive)
		}
		return v, err
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return answer[V]{}, r.Err
		}
		return r.Val.(answer[V]), nil
	case <-ctx.Done():
		return answer[V]{}, errors.Join(ctx.Err(), context.Cause(ctx))
	}
}
