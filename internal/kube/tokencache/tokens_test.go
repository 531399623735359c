// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tokencache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
)

// minter counts the tokens that it makes, each good for an hour.
type minter struct {
	now    time.Time
	minted atomic.Int32
	fail   error
}

func (m *minter) mint(_ context.Context, audience string) (string, time.Time, error) {
	n := m.minted.Add(1)
	if m.fail != nil {
		return "", time.Time{}, m.fail
	}
	return fmt.Sprintf("%s#%d", audience, n), m.now.Add(time.Hour), nil
}

func newMinter() (*minter, *Cache) {
	m := &minter{now: time.Unix(1_800_000_000, 0)}
	return m, New(m.mint, func() time.Time { return m.now })
}

func TestEachAudienceHasATokenOfItsOwn(t *testing.T) {
	m, tokens := newMinter()
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if got, err := tokens.Of(t.Context(), "shop/uid-1"); err != nil || got != "shop/uid-1#1" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	asking.Wait()
	if got, _ := tokens.Of(t.Context(), "shop/uid-2"); got != "shop/uid-2#2" {
		t.Errorf("for another audience: %q", got)
	}
	check.Equal(t, "requests for tokens", 2, m.minted.Load())
}

func TestATokenIsRenewedBeforeItExpires(t *testing.T) {
	m, tokens := newMinter()
	get := func() string {
		t.Helper()
		got, err := tokens.Of(t.Context(), "n/u")
		check.OK(t, err)
		return got
	}
	first := get()
	m.now = m.now.Add(47 * time.Minute)
	check.Equal(t, "after 47 minutes of 60", first, get())
	m.now = m.now.Add(2 * time.Minute)
	m.fail = errors.New("the API server is away")
	check.Equal(t, "with the API server away", first, get())
	m.fail, m.now = nil, m.now.Add(mintPause)
	if got := get(); got == first {
		t.Error("after 49 minutes of 60 it is still the first token")
	}
}

func TestFailedTokenRequestIsRetriedOncePerSecond(t *testing.T) {
	m, tokens := newMinter()
	m.fail = errors.New("forbidden")
	for range 100 {
		if _, err := tokens.Of(t.Context(), "n/u"); !errors.Is(err, m.fail) {
			t.Fatalf("got %v", err)
		}
	}
	check.Equal(t, "it was asked for times", 1, m.minted.Load())
	m.now = m.now.Add(mintPause)
	if _, err := tokens.Of(t.Context(), "n/u"); err == nil || m.minted.Load() != 2 {
		t.Errorf("a second later it was asked for %d times", m.minted.Load())
	}
}

func TestTokenWaitEndsWithCallerContext(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	_, tokens := newMinter()
	quick := tokens.mint
	tokens.mint = func(ctx context.Context, audience string) (string, time.Time, error) {
		close(begun)
		<-release
		return quick(ctx, audience)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := tokens.Of(ctx, "n/u")
		left <- err
	}()
	<-begun
	cancel()
	select {
	case err := <-left:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("who had asked got %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("who had asked waits on")
	}
	close(release)
	if got, err := tokens.Of(t.Context(), "n/u"); err != nil || got != "n/u#1" {
		t.Errorf("the others got %q, %v", got, err)
	}
}

func TestForgetRemovesTokensOfAudience(t *testing.T) {
	_, tokens := newMinter()
	if _, err := tokens.Of(t.Context(), "n/u"); err != nil {
		t.Fatal(err)
	}
	if tokens.Forget("n/u"); len(tokens.byAudience) != 0 {
		t.Errorf("%d are kept", len(tokens.byAudience))
	}
}

func TestExpiredTokensThatNobodyAsksForAreDropped(t *testing.T) {
	m, tokens := newMinter()
	for i := range 10 {
		if _, err := tokens.Of(t.Context(), fmt.Sprint("gone-", i)); err != nil {
			t.Fatal(err)
		}
	}
	m.now = m.now.Add(time.Hour)
	if _, err := tokens.Of(t.Context(), "new"); err != nil || len(tokens.byAudience) != 1 {
		t.Errorf("%d are kept, %v", len(tokens.byAudience), err)
	}
}
