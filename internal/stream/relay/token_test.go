// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	testIssuer  = "https://kubernetes.default.svc.cluster.local"
	testSubject = "system:serviceaccount:parley-system:parley-gateway"
)

// testAudience is that of the pod whose relay is tested.
var testAudience = Audience("shop", "0d1c-uid")

// issuer is a cluster's issuer: it signs tokens and publishes its keys. It plays the generator, too, which brings them.
type issuer struct {
	t       *testing.T
	keys    atomic.Pointer[jose.JSONWebKeySet]
	private map[string]*ecdsa.PrivateKey
	fetches atomic.Int32
	away    atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t, private: map[string]*ecdsa.PrivateKey{}}
	i.rotate("first")
	return i
}

// serve brings the keys whenever they are wanted.
func (i *issuer) serve(keys *IssuerKeys) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for keys.Wanted(ctx) == nil {
			if i.away.Load() {
				<-ctx.Done()
				return
			}
			i.fetches.Add(1)
			set, err := json.Marshal(i.keys.Load())
			if err == nil {
				err = keys.Put(set)
			}
			if err != nil {
				i.t.Error(err)
			}
		}
	})
	i.t.Cleanup(func() { stop(); running.Wait() })
}

// rotate publishes a new key in place of the ones before.
func (i *issuer) rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	i.private[id] = key
	i.keys.Store(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id, Algorithm: "ES256",
		Use: "sig"}}})
}

func (i *issuer) sign(keyID string, claims jwt.Claims) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: i.private[keyID], KeyID: keyID}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

func (i *issuer) verifier(now func() time.Time) *TokenVerifier {
	keys := &IssuerKeys{File: filepath.Join(i.t.TempDir(), "keys.json"), Now: now, Patience: 200 * time.Millisecond}
	i.serve(keys)
	return &TokenVerifier{Issuer: testIssuer, Audience: testAudience, Subjects: []string{testSubject}, Now: now,
		Keys: keys}
}

func goodClaims(now time.Time) jwt.Claims {
	return jwt.Claims{Issuer: testIssuer, Subject: testSubject, Audience: jwt.Audience{testAudience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(time.Hour))}
}

func TestTokensAreVerified(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	iss := newIssuer(t)
	forger := newIssuer(t)
	v := iss.verifier(func() time.Time { return now })
	tests := map[string]struct {
		change func(*jwt.Claims)
		want   error
	}{
		"a good token":             {func(*jwt.Claims) {}, nil},
		"one of several audiences": {func(c *jwt.Claims) { c.Audience = jwt.Audience{"x", testAudience} }, nil},
		"that of all relays": {func(c *jwt.Claims) { c.Audience = jwt.Audience{"parley-relay"} },
			ErrUnauthenticated},
		"that of another pod": {
			func(c *jwt.Claims) { c.Audience = jwt.Audience{Audience("shop", "another-uid")} }, ErrUnauthenticated},
		"that of another namespace": {func(c *jwt.Claims) { c.Audience = jwt.Audience{Audience("bank", "0d1c-uid")} },
			ErrUnauthenticated},
		"another audience": {
			func(c *jwt.Claims) { c.Audience = jwt.Audience{"https://kubernetes.default.svc"} }, ErrUnauthenticated},
		"no audience":    {func(c *jwt.Claims) { c.Audience = nil }, ErrUnauthenticated},
		"another issuer": {func(c *jwt.Claims) { c.Issuer = "https://elsewhere" }, ErrUnauthenticated},
		"an expired token": {func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-time.Minute)) },
			ErrUnauthenticated},
		"expired within the clock's leeway": {
			func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-10 * time.Second)) }, nil},
		"a token that never expires": {func(c *jwt.Claims) { c.Expiry = nil }, ErrUnauthenticated},
		"a token for later": {func(c *jwt.Claims) { c.NotBefore = jwt.NewNumericDate(now.Add(time.Hour)) },
			ErrUnauthenticated},
		"another subject": {func(c *jwt.Claims) { c.Subject = "system:serviceaccount:demo:default" }, ErrForbidden},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			claims := goodClaims(now)
			tt.change(&claims)
			if err := v.Authorize(t.Context(), iss.sign("first", claims)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	for name, token := range map[string]string{"signed by somebody else": forger.sign("first", goodClaims(now)),
		"no JWT": "abc"} {
		if err := v.Authorize(t.Context(), token); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s: %v, want ErrUnauthenticated", name, err)
		}
	}
	if n := iss.fetches.Load(); n != 1 {
		t.Errorf("keys were fetched %d times, want once", n)
	}
}

func TestARotatedKeyIsFetched(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	iss := newIssuer(t)
	v := iss.verifier(func() time.Time { return now })
	check := func(key string) error { return v.Authorize(context.Background(), iss.sign(key, goodClaims(now))) }
	if err := check("first"); err != nil {
		t.Fatal(err)
	}
	iss.rotate("second")
	if err := check("second"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("within ten seconds of the last fetch: %v, want ErrUnauthenticated", err)
	}
	now = now.Add(keysRefetch)
	if err := check("second"); err != nil {
		t.Errorf("after ten seconds: %v", err)
	}
	if err := check("first"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("the withdrawn key: %v, want ErrUnauthenticated", err)
	}
	if n := iss.fetches.Load(); n != 2 {
		t.Errorf("keys were fetched %d times, want 2", n)
	}
}

func TestKnownKeysOutliveAnAbsentAPIServer(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	iss := newIssuer(t)
	v := iss.verifier(func() time.Time { return now })
	if err := v.Authorize(t.Context(), iss.sign("first", goodClaims(now))); err != nil {
		t.Fatal(err)
	}
	iss.away.Store(true)
	now = now.Add(2 * keysMaxAge)
	if err := v.Authorize(t.Context(), iss.sign("first", goodClaims(now))); err != nil {
		t.Errorf("with the API server away: %v", err)
	}
}

func TestARelayThatWasRestartedWithoutItsGeneratorKnowsItsReaders(t *testing.T) {
	now := time.Now()
	iss := newIssuer(t)
	v := iss.verifier(time.Now)
	if err := v.Authorize(t.Context(), iss.sign("first", goodClaims(now))); err != nil {
		t.Fatal(err)
	}
	v.Keys = &IssuerKeys{File: v.Keys.File, Now: time.Now, Patience: time.Nanosecond}
	if err := v.Authorize(t.Context(), iss.sign("first", goodClaims(now))); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestWithoutKeysItIsNotTheTokensFault(t *testing.T) {
	iss := newIssuer(t)
	v := iss.verifier(time.Now)
	v.Keys = &IssuerKeys{Now: time.Now, Patience: time.Nanosecond}
	if err := v.Authorize(t.Context(), iss.sign("first", goodClaims(time.Now()))); !errors.Is(err, errNoKeys) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyWaitsForKeysThatAreKnown(t *testing.T) {
	iss := newIssuer(t)
	v := iss.verifier(time.Now)
	if err := v.Authorize(t.Context(), iss.sign("first", goodClaims(time.Now()))); err != nil {
		t.Fatal(err)
	}
	iss.away.Store(true)
	v.Keys.Patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = v.Keys.Key(ctx, "invented") })
	if err := v.Authorize(t.Context(), iss.sign("first", goodClaims(time.Now()))); err != nil {
		t.Error(err)
	}
	cancel()
	waiting.Wait()
}

func TestOnlyPublicKeysAreTaken(t *testing.T) {
	keys := &IssuerKeys{File: filepath.Join(t.TempDir(), "keys.json"), Now: time.Now}
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("a shared secret"), KeyID: "s",
		Algorithm: "HS256"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string][]byte{
		"a symmetric key": private, "no key": []byte(`{"keys":[]}`), "no JSON": []byte("<html>"),
		"too much": make([]byte, MaxKeysBytes+1),
	} {
		if err := keys.Put(set); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
