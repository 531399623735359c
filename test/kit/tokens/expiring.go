// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tokens

import (
	"crypto"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// algorithms are those that an API server signs tokens with.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

// Expiring is a service-account token like a given one, signed with the key of its issuer, but that it expires at a
// time, which may be sooner than in the ten minutes for which an API server gives one out at least.
func Expiring(key crypto.PrivateKey, token string, at time.Time) (string, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	claims := map[string]any{}
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return "", fmt.Errorf("reading the claims: %w", err)
	}
	claims["exp"] = at.Unix()
	header := parsed.Headers[0]
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(header.Algorithm),
		Key: jose.JSONWebKey{Key: key, KeyID: header.KeyID}}, nil)
	if err != nil {
		return "", fmt.Errorf("using the key: %w", err)
	}
	short, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		return "", fmt.Errorf("signing the token: %w", err)
	}
	return short, nil
}
