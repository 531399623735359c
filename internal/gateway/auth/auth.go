// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth decides who may follow a chat: a bearer token is shown to the API server (TokenReview), and whom it
// belongs to must be allowed to get chats/stream of that chat (SubjectAccessReview), a subresource that exists for this
// question alone.
//
// Answers are remembered briefly, under a hash of the token: ten seconds if they are good, one if they are not, so that a
// right that was just granted works at once and one that was withdrawn ends soon. No token is kept.
package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"parley.dev/parley/api/v1alpha1"
)

const (
	// positiveTTL and negativeTTL are how long an answer of the API server counts.
	positiveTTL = 10 * time.Second
	negativeTTL = time.Second
	// maxAnswers bounds each of the two caches.
	maxAnswers = 4096
	// reviewTimeout bounds one question to the API server.
	reviewTimeout = 10 * time.Second
)

// Error says why somebody may not follow a chat, in the terms of HTTP.
type Error struct {
	// Status is 401, 403, or 503 if the API server gave no answer.
	Status int
	// Reason is one CamelCase word.
	Reason string
	// Message says what is missing and how to come by it.
	Message string
}

func (e *Error) Error() string { return e.Message }

// Denied says that the answer is no, and not only late.
func (e *Error) Denied() bool { return e.Status != http.StatusServiceUnavailable }

// Checker asks the API server. It is safe for concurrent use.
type Checker struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	asking singleflight.Group
	users  *answers[user]
	grants *answers[*Error]
}

// user is whom a token belongs to, or why it is not good.
type user struct {
	info    authenticationv1.UserInfo
	refusal *Error
}

// New makes a checker. now tells the time, default time.Now.
func New(tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface, now func() time.Time) *Checker {
	if now == nil {
		now = time.Now
	}
	return &Checker{tokens: tokens, access: access, users: newAnswers[user](now), grants: newAnswers[*Error](now)}
}

// Check returns nil if the holder of the token may follow the chat.
func (c *Checker) Check(ctx context.Context, token, namespace, chat string) *Error {
	if token == "" {
		return unauthenticated("no bearer token: send the header \"Authorization: Bearer TOKEN\"")
	}
	hash := sha256.Sum256([]byte(token))
	who, err := c.authenticate(ctx, string(hash[:]), token)
	if err != nil {
		return unavailable("authenticate", err)
	}
	if who.refusal != nil {
		return who.refusal
	}
	refusal, err := c.authorize(ctx, string(hash[:]), who.info, namespace, chat)
	if err != nil {
		return unavailable("authorize", err)
	}
	return refusal
}

func (c *Checker) authenticate(ctx context.Context, hash, token string) (user, error) {
	return ask(ctx, c, c.users, hash, func(ctx context.Context) (user, bool, error) {
		review, err := c.tokens.Create(ctx, &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: token},
		}, metav1.CreateOptions{})
		if err != nil {
			return user{}, false, err
		}
		if !review.Status.Authenticated {
			return user{refusal: unauthenticated("the cluster does not know this token, or it has expired")}, false, nil
		}
		return user{info: review.Status.User}, true, nil
	})
}

func (c *Checker) authorize(ctx context.Context, hash string, who authenticationv1.UserInfo, namespace, chat string) (*Error, error) {
	key := hash + "/" + namespace + "/" + chat
	return ask(ctx, c, c.grants, key, func(ctx context.Context) (*Error, bool, error) {
		extra := make(map[string]authorizationv1.ExtraValue, len(who.Extra))
		for k, v := range who.Extra {
			extra[k] = authorizationv1.ExtraValue(v)
		}
		review, err := c.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: who.Username, UID: who.UID, Groups: who.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version,
				Resource: "chats", Subresource: "stream", Namespace: namespace, Name: chat,
			},
		}}, metav1.CreateOptions{})
		if err != nil {
			return nil, false, err
		}
		if !review.Status.Allowed {
			return forbidden(who.Username, namespace), false, nil
		}
		return nil, true, nil
	})
}

// ask returns a remembered answer, or asks once for all who ask at the same time. Who asks may go away; the question is
// then answered for the others.
func ask[V any](ctx context.Context, c *Checker, known *answers[V], key string, question func(context.Context) (V, bool, error)) (V, error) {
	if v, ok := known.get(key); ok {
		return v, nil
	}
	result := c.asking.DoChan(key, func() (any, error) {
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		v, positive, err := question(asking)
		if err == nil {
			known.put(key, v, positive)
		}
		return v, err
	})
	var none V
	select {
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(V), nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func unauthenticated(message string) *Error {
	return &Error{Status: http.StatusUnauthorized, Reason: "Unauthorized", Message: message}
}

func forbidden(username, namespace string) *Error {
	return &Error{Status: http.StatusForbidden, Reason: "Forbidden", Message: fmt.Sprintf(
		"%s may not get chats/stream in namespace %s: ask for the ClusterRole parley-chat-viewer", username, namespace)}
}

func unavailable(what string, err error) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Reason: "ServiceUnavailable",
		Message: fmt.Sprintf("could not %s with the API server, try again: %v", what, err)}
}
