// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package satoken verifies service-account tokens against the keys that the cluster's issuer publishes, for programs
// that cannot ask the API server: issuer, audience, expiry and subject. Callers provide the keys.
package satoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// clockLeeway is the difference that the clocks of two nodes may have.
const clockLeeway = 30 * time.Second

// signatures are the algorithms with which API servers sign service-account tokens. None of them is symmetric, so
// that a published key is never used as a secret.
var signatures = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

var (
	// ErrUnauthenticated means that the token is not valid.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden means that the token is valid, but its subject is not allowed.
	ErrForbidden = errors.New("forbidden")
	// ErrNoKeys means that the verifier has no keys yet, whether or not the token is valid.
	ErrNoKeys = errors.New("the keys of the cluster's issuer are not known yet")
)

// KeySource has the keys of the issuer.
type KeySource interface {
	// Key finds the public keys with an id, which may be none. It returns ErrNoKeys while it has no keys at all.
	Key(ctx context.Context, id string) ([]jose.JSONWebKey, error)
}

// Verifier allows the subjects on a list that have service-account tokens for this audience. It uses go-jose and not
// go-oidc: a KeySet of go-oidc has to verify the signature itself, its errors arrive as text, and it has other leeways
// for the times of a token.
type Verifier struct {
	// Issuer that the tokens must come from.
	Issuer string
	// Audience of the tokens: that of one pod, so that they are valid nowhere else.
	Audience string
	// Subjects that are allowed, such as system:serviceaccount:parley-system:parley-gateway.
	Subjects []string
	// Keys of the issuer.
	Keys KeySource
	// Now returns the current time.
	Now func() time.Time
}

// Authorize returns ErrUnauthenticated, ErrForbidden or ErrNoKeys, wrapped, unless the token's subject is allowed.
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

// MaxKeysBytes bounds a key set. An RSA key of 4096 bits takes under 1 KiB of it.
const MaxKeysBytes = 1 << 20

// PublicKeys decodes a JSON Web Key Set that the issuer publishes. It ignores keys that are not public. A set without a
// public key is an error.
func PublicKeys(set []byte) (jose.JSONWebKeySet, error) {
	var all, public jose.JSONWebKeySet
	if len(set) > MaxKeysBytes {
		return public, fmt.Errorf("decoding the issuer's keys: %d bytes are more than %d", len(set), MaxKeysBytes)
	}
	if err := json.Unmarshal(set, &all); err != nil {
		return public, fmt.Errorf("decoding the issuer's keys: %w", err)
	}
	for i := range all.Keys {
		if all.Keys[i].IsPublic() {
			public.Keys = append(public.Keys, all.Keys[i])
		}
	}
	if len(public.Keys) == 0 {
		return public, errors.New("the issuer's key set holds no public key")
	}
	return public, nil
}
