// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokens is a cluster's issuer for tests: it signs service-account tokens with real keys, and publishes those.
package tokens

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	// Issuer that all tokens come from.
	Issuer = "https://kubernetes.default.svc.cluster.local"
	// FirstKey is the id of the key that a new issuer has.
	FirstKey = "first"
)

// Cluster signs and publishes. It is safe for concurrent use.
type Cluster struct {
	t testing.TB

	mu        sync.Mutex
	published []byte
	private   map[string]*ecdsa.PrivateKey
}

// New makes an issuer with one key, FirstKey.
func New(t testing.TB) *Cluster {
	c := &Cluster{t: t, private: map[string]*ecdsa.PrivateKey{}}
	c.Rotate(FirstKey)
	return c
}

// Rotate publishes a new key in place of the ones before. The issuer can still sign with those.
func (c *Cluster) Rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id,
		Algorithm: "ES256", Use: "sig"}}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.private[id], c.published = key, set
}

// KeySet is the JSON Web Key Set that the issuer publishes.
func (c *Cluster) KeySet() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.published
}

// Sign makes a token of claims with a key that the issuer has, or had.
func (c *Cluster) Sign(keyID string, claims jwt.Claims) string {
	c.mu.Lock()
	key := c.private[keyID]
	c.mu.Unlock()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: key, KeyID: keyID}}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		c.t.Fatal(err)
	}
	return token
}

// Claims are those of a good token, which is valid for an hour.
func Claims(subject, audience string, now time.Time) jwt.Claims {
	return jwt.Claims{Issuer: Issuer, Subject: subject, Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Hour))}
}
