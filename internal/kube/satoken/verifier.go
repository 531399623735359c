// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package satoken verifies service-account tokens against the keys that the cluster's issuer publishes, for programs
// that cannot ask the API server: who signed a token, for whom, until when, and whose it is. It knows no cluster and no
// file; where the keys come from is the caller's.
package satoken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// clockLeeway is how far the clocks of two nodes may be apart.
const clockLeeway = 30 * time.Second

// signatures are the algorithms with which API servers sign service-account tokens. None of them is symmetric, so
// that a published key can never be taken for a secret.
var signatures = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

var (
	// ErrUnauthenticated means that the token proves nothing.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden means that the token is good, but its subject is not let in.
	ErrForbidden = errors.New("forbidden")
	// ErrNoKeys means that it is the verifier that cannot tell yet, and not the token's fault.
	ErrNoKeys = errors.New("the keys of the cluster's issuer are not known yet")
)

// KeySource has the keys of the issuer.
type KeySource interface {
	// Key finds the public keys with an id: none if the issuer has none of it. It returns ErrNoKeys as long as it knows
	// no keys at all.
	Key(ctx context.Context, id string) ([]jose.JSONWebKey, error)
}

// Verifier lets in the subjects on a list, who prove themselves with service-account tokens for this audience. It
// checks them against the issuer's published keys, without a call of the API server for each. go-jose does the checks,
// and not go-oidc: a KeySet of go-oidc has to verify the signature itself, its error ErrNoKeys arrives as text, and the
// times of a token have no leeway at the end and 5 minutes at the beginning.
type Verifier struct {
	// Issuer that the tokens must come from.
	Issuer string
	// Audience that the tokens must be meant for: that of one pod, so that they are of use nowhere else.
	Audience string
	// Subjects who are let in, such as system:serviceaccount:parley-system:parley-gateway.
	Subjects []string
	// Keys of the issuer.
	Keys KeySource
	// Now returns the current time.
	Now func() time.Time
}

// Authorize returns ErrUnauthenticated, ErrForbidden or ErrNoKeys, wrapped, unless the token's subject is let in.
func (v *Verifier) Authorize(ctx context.Context, token string) error {
	parsed, err := jwt.ParseSigned(token, signatures)
	if err != nil || len(parsed.Headers) != 1 {
		return fmt.Errorf("%w: the token is no signed JWT", ErrUnauthenticated)
	}
	keys, err := v.Keys.Key(ctx, parsed.Headers[0].KeyID)
	if err != nil {
		return err
	}
	claims, err := verified(parsed, keys)
	if err != nil {
		return err
	}
	if err := v.validate(claims); err != nil {
		return err
	}
	if !slices.Contains(v.Subjects, claims.Subject) {
		return fmt.Errorf("%w: %s is not allowed", ErrForbidden, claims.Subject)
	}
	return nil
}

func verified(token *jwt.JSONWebToken, keys []jose.JSONWebKey) (jwt.Claims, error) {
	for _, key := range keys {
		var claims jwt.Claims
		if token.Claims(key.Key, &claims) == nil {
			return claims, nil
		}
	}
	return jwt.Claims{}, fmt.Errorf("%w: no key of the issuer has signed the token", ErrUnauthenticated)
}

func (v *Verifier) validate(claims jwt.Claims) error {
	if claims.Expiry == nil {
		return fmt.Errorf("%w: the token does not expire", ErrUnauthenticated)
	}
	expected := jwt.Expected{Issuer: v.Issuer, AnyAudience: jwt.Audience{v.Audience}, Time: v.Now()}
	err := claims.ValidateWithLeeway(expected, clockLeeway)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return fmt.Errorf("%w: the token's issuer is %q, not %q", ErrUnauthenticated, claims.Issuer, v.Issuer)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return fmt.Errorf("%w: the token is not for the audience %q", ErrUnauthenticated, v.Audience)
	default:
		return fmt.Errorf("%w: %w", ErrUnauthenticated, err)
	}
}
