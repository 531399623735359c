// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package satoken_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/tokens"
)

const (
	gateway = "system:serviceaccount:parley-system:parley-gateway"
	thisPod = "parley-relay/shop/0d1c-uid"
)

// published is a source of the keys of one key set.
type published []byte

// Key implements satoken.KeySource.
func (p published) Key(_ context.Context, id string) ([]jose.JSONWebKey, error) {
	if p == nil {
		return nil, satoken.ErrNoKeys
	}
	keys, err := satoken.PublicKeys(p)
	return keys.Key(id), err
}

func TestTokensAreVerified(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	cluster := tokens.New(t)
	v := &satoken.Verifier{Issuer: tokens.Issuer, Audience: thisPod, Subjects: []string{"x", gateway},
		Keys: published(cluster.KeySet()), Now: func() time.Time { return now }}
	for name, tt := range map[string]struct {
		change func(*jwt.Claims)
		want   error
	}{
		"a good token":             {func(*jwt.Claims) {}, nil},
		"one of several audiences": {func(c *jwt.Claims) { c.Audience = jwt.Audience{"x", thisPod} }, nil},
		"that of all relays": {func(c *jwt.Claims) { c.Audience = jwt.Audience{"parley-relay"} },
			satoken.ErrUnauthenticated},
		"that of another pod": {func(c *jwt.Claims) { c.Audience = jwt.Audience{"parley-relay/shop/another-uid"} },
			satoken.ErrUnauthenticated},
		"that of another namespace": {func(c *jwt.Claims) { c.Audience = jwt.Audience{"parley-relay/bank/0d1c-uid"} },
			satoken.ErrUnauthenticated},
		"that of this pod's workspace": {
			func(c *jwt.Claims) { c.Audience = jwt.Audience{"parley-workspace/shop/0d1c-uid"} },
			satoken.ErrUnauthenticated},
		"another audience": {
			func(c *jwt.Claims) { c.Audience = jwt.Audience{"https://kubernetes.default.svc"} },
			satoken.ErrUnauthenticated},
		"no audience":    {func(c *jwt.Claims) { c.Audience = nil }, satoken.ErrUnauthenticated},
		"another issuer": {func(c *jwt.Claims) { c.Issuer = "https://elsewhere" }, satoken.ErrUnauthenticated},
		"no issuer":      {func(c *jwt.Claims) { c.Issuer = "" }, satoken.ErrUnauthenticated},
		"an expired token": {func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-time.Minute)) },
			satoken.ErrUnauthenticated},
		"expired within the clock's leeway": {
			func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-10 * time.Second)) }, nil},
		"a token that never expires": {func(c *jwt.Claims) { c.Expiry = nil }, satoken.ErrUnauthenticated},
		"a token for later": {func(c *jwt.Claims) { c.NotBefore = jwt.NewNumericDate(now.Add(time.Hour)) },
			satoken.ErrUnauthenticated},
		"another subject": {func(c *jwt.Claims) { c.Subject = "system:serviceaccount:demo:default" },
			satoken.ErrForbidden},
		"no subject": {func(c *jwt.Claims) { c.Subject = "" }, satoken.ErrForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			claims := tokens.Claims(gateway, thisPod, now)
			tt.change(&claims)
			if err := v.Authorize(t.Context(), cluster.Sign(tokens.FirstKey, claims)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestWhatTheIssuerHasNotSignedProvesNothing(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	cluster, forger := tokens.New(t), tokens.New(t)
	good := tokens.Claims(gateway, thisPod, now)
	earlier := cluster.Sign(tokens.FirstKey, good)
	cluster.Rotate("second")
	forger.Rotate("second")
	v := &satoken.Verifier{Issuer: tokens.Issuer, Audience: thisPod, Subjects: []string{gateway},
		Keys: published(cluster.KeySet()), Now: func() time.Time { return now }}
	for name, token := range map[string]string{
		"signed by somebody else":             forger.Sign("second", good),
		"signed with a key that is withdrawn": earlier,
		"signed with what is published":       signedWithPublicKey(t, cluster.KeySet(), good),
		"not signed":                          "eyJhbGciOiJub25lIn0.e30.",
		"no JWT":                              "abc",
		"nothing":                             "",
	} {
		if err := v.Authorize(t.Context(), token); !errors.Is(err, satoken.ErrUnauthenticated) {
			t.Errorf("%s: %v, want ErrUnauthenticated", name, err)
		}
	}
}

// signedWithPublicKey makes a token that verifies if the published key is taken for a shared secret.
func signedWithPublicKey(t *testing.T, set []byte, claims jwt.Claims) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: set, KeyID: "second"}},
		nil)
	check.OK(t, err)
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	check.OK(t, err)
	return token
}

func TestWithoutKeysItIsNotTheTokensFault(t *testing.T) {
	v := &satoken.Verifier{Issuer: tokens.Issuer, Audience: thisPod, Subjects: []string{gateway}, Keys: published(nil),
		Now: time.Now}
	token := tokens.New(t).Sign(tokens.FirstKey, tokens.Claims(gateway, thisPod, time.Now()))
	if err := v.Authorize(t.Context(), token); !errors.Is(err, satoken.ErrNoKeys) {
		t.Errorf("got %v, want ErrNoKeys", err)
	}
}

func TestOnlyPublicKeysAreTaken(t *testing.T) {
	secret := jose.JSONWebKey{Key: []byte("a shared secret"), KeyID: "s", Algorithm: "HS256"}
	alone, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{secret}})
	check.OK(t, err)
	for name, set := range map[string][]byte{
		"a symmetric key": alone, "no key": []byte(`{"keys":[]}`), "no JSON": []byte("<html>"), "nothing": nil,
		"too much": make([]byte, satoken.MaxKeysBytes+1),
	} {
		if keys, err := satoken.PublicKeys(set); err == nil {
			t.Errorf("%s was taken: %d keys", name, len(keys.Keys))
		}
	}
	var beside jose.JSONWebKeySet
	check.OK(t, json.Unmarshal(tokens.New(t).KeySet(), &beside))
	beside.Keys = append(beside.Keys, secret)
	mixed, err := json.Marshal(beside)
	check.OK(t, err)
	if keys, err := satoken.PublicKeys(mixed); err != nil || len(keys.Keys) != 1 {
		t.Errorf("of a public and a symmetric key %d were taken: %v", len(keys.Keys), err)
	}
}
