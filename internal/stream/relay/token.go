// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

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

// TokenVerifier lets in the subjects on a list, who prove themselves with service-account tokens for this audience. It
// checks them against the issuer's published keys, without a call of the API server for each. go-jose does the checks,
// and not go-oidc, which fetches keys itself, waives 5 minutes of a token's beginning, and does not tell missing keys
// from a false signature.
type TokenVerifier struct {
	// Issuer that the tokens must come from.
	Issuer string
	// Audience that the tokens must be meant for: that of this pod, see Audience.
	Audience string
	// Subjects who are let in, such as system:serviceaccount:parley-system:parley-gateway.
	Subjects []string
	// Keys of the issuer.
	Keys *IssuerKeys
	// Now tells the time.
	Now func() time.Time
}

// Authorize implements Authorizer.
func (v *TokenVerifier) Authorize(ctx context.Context, token string) error {
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
		return fmt.Errorf("%w: %s may not read episodes", ErrForbidden, claims.Subject)
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

func (v *TokenVerifier) validate(claims jwt.Claims) error {
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
