// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/tokens"
)

const testSubject = "system:serviceaccount:parley-system:parley-gateway"

// testAudience is that of the pod whose relay is tested.
var testAudience = Audience("shop", "0d1c-uid")

// issuer is a cluster's issuer, and plays the generator, which brings its keys.
type issuer struct {
	*tokens.Cluster
	t       *testing.T
	fetches atomic.Int32
	away    atomic.Bool
}

func newIssuer(t *testing.T) *issuer { return &issuer{Cluster: tokens.New(t), t: t} }

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
			if err := keys.Put(i.KeySet()); err != nil {
				i.t.Error(err)
			}
		}
	})
	i.t.Cleanup(func() { stop(); running.Wait() })
}

// verifier takes the keys that the generator brings. The keys are also returned as they are.
func (i *issuer) verifier(now func() time.Time) (*satoken.Verifier, *IssuerKeys) {
	keys := &IssuerKeys{File: filepath.Join(i.t.TempDir(), "keys.json"), Now: now, Patience: 200 * time.Millisecond}
	i.serve(keys)
	return &satoken.Verifier{Issuer: tokens.Issuer, Audience: testAudience, Subjects: []string{testSubject}, Now: now,
		Keys: keys}, keys
}

func goodClaims(now time.Time) jwt.Claims { return tokens.Claims(testSubject, testAudience, now) }

func TestKeysAreFetchedOnceForManyTokens(t *testing.T) {
	iss := newIssuer(t)
	v, _ := iss.verifier(time.Now)
	for range 3 {
		if err := v.Authorize(t.Context(), iss.Sign("first", goodClaims(time.Now()))); err != nil {
			t.Error(err)
		}
	}
	check.Equal(t, "fetches of keys", 1, iss.fetches.Load())
}

func TestARotatedKeyIsFetched(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	iss := newIssuer(t)
	v, _ := iss.verifier(func() time.Time { return now })
	authorize := func(key string) error { return v.Authorize(context.Background(), iss.Sign(key, goodClaims(now))) }
	check.OK(t, authorize("first"))
	iss.Rotate("second")
	if err := authorize("second"); !errors.Is(err, satoken.ErrUnauthenticated) {
		t.Errorf("within ten seconds of the last fetch: %v, want ErrUnauthenticated", err)
	}
	now = now.Add(keysRefetch)
	if err := authorize("second"); err != nil {
		t.Errorf("after ten seconds: %v", err)
	}
	if err := authorize("first"); !errors.Is(err, satoken.ErrUnauthenticated) {
		t.Errorf("the withdrawn key: %v, want ErrUnauthenticated", err)
	}
	check.Equal(t, "fetches of keys", 2, iss.fetches.Load())
}

func TestKnownKeysOutliveAnAbsentAPIServer(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	iss := newIssuer(t)
	v, _ := iss.verifier(func() time.Time { return now })
	check.OK(t, v.Authorize(t.Context(), iss.Sign("first", goodClaims(now))))
	iss.away.Store(true)
	now = now.Add(2 * keysMaxAge)
	if err := v.Authorize(t.Context(), iss.Sign("first", goodClaims(now))); err != nil {
		t.Errorf("with the API server away: %v", err)
	}
}

func TestRestartedRelayVerifiesReadersWithPersistedKeys(t *testing.T) {
	now := time.Now()
	iss := newIssuer(t)
	v, keys := iss.verifier(time.Now)
	check.OK(t, v.Authorize(t.Context(), iss.Sign("first", goodClaims(now))))
	v.Keys = &IssuerKeys{File: keys.File, Now: time.Now, Patience: time.Nanosecond}
	if err := v.Authorize(t.Context(), iss.Sign("first", goodClaims(now))); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

func TestWithoutKeysItIsNotTheTokensFault(t *testing.T) {
	iss := newIssuer(t)
	v, _ := iss.verifier(time.Now)
	v.Keys = &IssuerKeys{Now: time.Now, Patience: time.Nanosecond}
	if err := v.Authorize(t.Context(), iss.Sign("first", goodClaims(time.Now()))); !errors.Is(err, satoken.ErrNoKeys) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyWaitsForKeysThatAreKnown(t *testing.T) {
	iss := newIssuer(t)
	v, keys := iss.verifier(time.Now)
	check.OK(t, v.Authorize(t.Context(), iss.Sign("first", goodClaims(time.Now()))))
	iss.away.Store(true)
	keys.Patience = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() { _, _ = keys.Key(ctx, "invented") })
	if err := v.Authorize(t.Context(), iss.Sign("first", goodClaims(time.Now()))); err != nil {
		t.Error(err)
	}
	cancel()
	waiting.Wait()
}

func TestKeySetWithoutPublicKeyIsRejected(t *testing.T) {
	keys := &IssuerKeys{File: filepath.Join(t.TempDir(), "keys.json"), Now: time.Now}
	if err := keys.Put([]byte(`{"keys":[]}`)); err == nil {
		t.Error("it was taken")
	}
}
