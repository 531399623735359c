// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"

	"k8s.io/client-go/rest"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
)

// userAgent names the gateway in the API server's logs, in addition to the caller.
const userAgent = "parley-gateway-caller"

// NewClient makes a client of the API server that cfg names. Its only credentials are those in the context of a
// request.
func NewClient(cfg *rest.Config) (*apiclient.Client, error) {
	anonymous := rest.AnonymousClientConfig(cfg)
	anonymous.Wrap(func(next http.RoundTripper) http.RoundTripper { return &asCaller{next} })
	return apiclient.New(anonymous, userAgent)
}

type tokenKey struct{}

// WithToken returns a context in which a client of NewClient uses the token.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

type callerKey struct{}

func withCaller(ctx context.Context, caller string) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// callerOf is the name of the caller.
func callerOf(ctx context.Context) string {
	caller, _ := ctx.Value(callerKey{}).(string)
	return caller
}

// may asks the API server whether the caller has a right, which the role gives.
func may(ctx context.Context, client *apiclient.Client, right apiclient.ResourceAttributes, role string) error {
	allowed, err := client.Allowed(ctx, right)
	if err != nil || allowed {
		return err
	}
	return refused{&refusal.Error{Status: http.StatusForbidden, Reason: refusal.Forbidden,
		Message: fmt.Sprintf("you may not %s %s in namespace %s: ask for the ClusterRole %s", right.Verb,
			path.Join(right.Resource, right.Subresource), right.Namespace, role)}}
}

// asCaller sends requests with the token of the context's caller.
type asCaller struct{ next http.RoundTripper }

// RoundTrip sends nothing without a token, and follows no redirect, which could take the token elsewhere.
func (t *asCaller) RoundTrip(r *http.Request) (*http.Response, error) {
	token, _ := r.Context().Value(tokenKey{}).(string)
	if token == "" {
		return nil, errors.New("request without a caller's token")
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest &&
		answer.StatusCode != http.StatusNotModified {
		_ = answer.Body.Close() // It is not read.
		return nil, fmt.Errorf("the API server sends elsewhere (%s), which is not followed", answer.Status)
	}
	return answer, nil
}
