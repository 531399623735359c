// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/netguard/limit"
)

// providerTimeout bounds one request to the identity provider.
const providerTimeout = 10 * time.Second

// provider is the identity provider, as it describes itself.
type provider struct {
	oauth2.Config
	verifier   *oidc.IDTokenVerifier
	endSession string
}

// discover returns the provider. It is asked for its description until it has answered once.
func (s *SignIn) discover(ctx context.Context) (*provider, *refusal.Error) {
	if known := s.provider.Load(); known != nil {
		return known, nil
	}
	found, err := limit.Shared(ctx, &s.discovering, "", providerTimeout, func(ctx context.Context) (*provider, error) {
		described, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.options.Issuer)
		if err != nil {
			return nil, err
		}
		var more struct {
			EndSession string `json:"end_session_endpoint"`
		}
		if err := described.Claims(&more); err != nil {
			return nil, err
		}
		found := &provider{
			Config: oauth2.Config{ClientID: s.options.ClientID, ClientSecret: s.options.ClientSecret,
				Endpoint: described.Endpoint(), RedirectURL: s.options.RedirectURL, Scopes: s.options.Scopes},
			verifier:   described.Verifier(&oidc.Config{ClientID: s.options.ClientID, Now: s.options.Now}),
			endSession: more.EndSession,
		}
		s.provider.Store(found)
		return found, nil
	})
	if err != nil {
		return nil, s.unavailable(err)
	}
	return found, nil
}

// tokens converts the provider's answer to a session. nonce is that of the sign-in; empty for a refreshed session. If
// the ID token cannot be verified for now, the session has the refresh token alone: the old one may no longer be
// valid.
func (s *SignIn) tokens(ctx context.Context, from *provider, answer *oauth2.Token, err error, nonce string) (
	session, *refusal.Error) {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "invalid_grant" {
		return session{}, unauthenticated("the identity provider has ended this session: sign in again")
	}
	if err != nil {
		return session{}, s.unavailable(err)
	}
	id, _ := answer.Extra("id_token").(string)
	if id == "" {
		return session{}, unauthenticated("the identity provider returns no ID token: sign in again, and if that does " +
			"not help, add openid to --oidc-scopes")
	}
	verified, err := from.verifier.Verify(oidc.ClientContext(ctx, s.client), id)
	if err != nil && strings.Contains(err.Error(), "fetching keys") { // The library keeps the text of the cause alone.
		return session{RefreshToken: answer.RefreshToken}, s.unavailable(err)
	}
	if err != nil {
		return session{}, &refusal.Error{Status: http.StatusUnauthorized, Reason: refusal.Unauthorized, Cause: err,
			Message: fmt.Sprintf("the ID token is not one of the issuer %s for the client %s: sign in again",
				s.options.Issuer, s.options.ClientID)}
	}
	if nonce != "" && verified.Nonce != nonce {
		return session{}, unauthenticated("the ID token belongs to another sign-in: sign in again")
	}
	return session{IDToken: id, RefreshToken: answer.RefreshToken}, nil
}

// refresh gets new tokens with the refresh token of a session.
func (s *SignIn) refresh(ctx context.Context, old session) (session, *refusal.Error) {
	from, no := s.discover(ctx)
	if no != nil {
		return session{}, no
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, s.client)
	answer, err := from.TokenSource(ctx, &oauth2.Token{RefreshToken: old.RefreshToken}).Token()
	renewed, no := s.tokens(ctx, from, answer, err, "")
	renewed.IDToken = cmp.Or(renewed.IDToken, old.IDToken)
	return renewed, no
}

// logoutURL is where the provider ends its own session; empty if it does not support that.
func (s *SignIn) logoutURL(ctx context.Context, ended session) string {
	from, no := s.discover(ctx)
	if no != nil || from.endSession == "" {
		return ""
	}
	at, err := url.Parse(from.endSession)
	if err != nil {
		return ""
	}
	query := at.Query()
	query.Set("client_id", s.options.ClientID)
	query.Set("id_token_hint", ended.IDToken)
	query.Set("post_logout_redirect_uri", s.home)
	at.RawQuery = query.Encode()
	return at.String()
}

// unavailable is the refusal while the provider does not work. The log has the cause.
func (s *SignIn) unavailable(cause error) *refusal.Error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](cause); ok { // Its text has the body of the answer.
		cause = fmt.Errorf("the answer is %s %.100q", refused.Response.Status, refused.ErrorCode)
	}
	return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.IdentityProviderUnavailable,
		RetryAfter: 2 * time.Second, Cause: fmt.Errorf("asking the identity provider: %w", cause),
		Message: fmt.Sprintf("the identity provider %s does not answer, or refuses the gateway: try again",
			s.options.Issuer)}
}
