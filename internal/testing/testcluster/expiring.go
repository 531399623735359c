// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// algorithms are those that an API server signs tokens with.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

// Expiring is a service-account token like a given one of this cluster, but that it expires at a time, which may be
// sooner than in the ten minutes for which an API server gives one out at least.
func (c *Cluster) Expiring(t testing.TB, token string, at time.Time) string {
	t.Helper()
	short, err := c.expiring(token, at)
	if err != nil {
		t.Fatalf("making a token that expires at %s: %v", at, err)
	}
	return short
}

func (c *Cluster) expiring(token string, at time.Time) (string, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	claims := map[string]any{}
	if err := parsed.UnsafeClaimsWithoutVerification(&claims); err != nil {
		return "", fmt.Errorf("reading the claims: %w", err)
	}
	claims["exp"] = at.Unix()
	key, err := c.signingKey()
	if err != nil {
		return "", err
	}
	header := parsed.Headers[0]
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(header.Algorithm),
		Key: jose.JSONWebKey{Key: key, KeyID: header.KeyID}}, nil)
	if err != nil {
		return "", fmt.Errorf("using the key: %w", err)
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// signingKey is the key with which the API server signs tokens.
func (c *Cluster) signingKey() (crypto.PrivateKey, error) {
	raw, err := os.ReadFile(filepath.Join(c.env.ControlPlane.GetAPIServer().CertDir, "sa-signer.key"))
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, fmt.Errorf("the key is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decoding the key: %w", err)
	}
	return key, nil
}
