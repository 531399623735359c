// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/internal/stream/relay"
)

// mintPause is the least time between two requests for the token for one relay, after one that failed.
const mintPause = time.Second

// mintTimeout bounds one request for a token.
const mintTimeout = 10 * time.Second

// MintToken asks the API server for a token of the gateway's own account for an audience.
// It says when the token expires.
type MintToken func(ctx context.Context, audience string) (token string, expires time.Time, err error)

// relayTokens are the gateway's tokens for the relays, one for each pod, because each relay sees the token that it is
// shown. They are kept while the pod lives, and renewed in the last fifth of their time.
type relayTokens struct {
	mint    MintToken
	now     func() time.Time
	minting singleflight.Group

	mu    sync.Mutex
	byPod map[types.UID]*relayToken
}

// relayToken is the token for one relay.
type relayToken struct {
	token          string
	renew, expires time.Time
	failed         time.Time // of the last try; zero if it went well
	failure        error
}

func newRelayTokens(mint MintToken, now func() time.Time) *relayTokens {
	return &relayTokens{mint: mint, now: now, byPod: map[types.UID]*relayToken{}}
}

// of returns the token for the relay of the pod. All who want it at once share one request,
// and each waits no longer than its ctx.
func (t *relayTokens) of(ctx context.Context, namespace string, pod types.UID) (string, error) {
	own := t.entry(pod)
	if token, known, err := t.known(own, t.now()); known {
		return token, err
	}
	result := t.minting.DoChan(string(pod), func() (any, error) {
		now := t.now()
		if token, known, err := t.known(own, now); known { // Another request has ended since.
			return token, err
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), mintTimeout) // Others wait for it, too.
		defer cancel()
		audience := relay.Audience(namespace, string(pod))
		token, expires, err := t.mint(asking, audience)
		if err != nil {
			err = fmt.Errorf("getting a token for the audience %s: %w", audience, err)
		}
		return t.keep(own, now, token, expires, err)
	})
	select {
	case r := <-result:
		return r.Val.(string), r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *relayTokens) entry(pod types.UID) *relayToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.byPod[pod]
	if own == nil {
		own = &relayToken{}
		t.byPod[pod] = own
	}
	return own
}

// known returns what is known of a token. It is not known if it is to be asked for.
func (t *relayTokens) known(own *relayToken, now time.Time) (token string, known bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now.Before(own.renew) && (own.failure == nil || now.Sub(own.failed) >= mintPause) {
		return "", false, nil
	}
	token, err = own.answer(now)
	return token, true, err
}

// keep keeps what came of a request that was made at that time.
func (t *relayTokens) keep(own *relayToken, asked time.Time, token string, expires time.Time, failure error) (string,
	error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if failure != nil {
		own.failed, own.failure = asked, failure
		return own.answer(asked)
	}
	own.token, own.expires, own.failure = token, expires, nil
	own.renew = expires.Add(-expires.Sub(asked) / 5)
	return own.token, nil
}

// answer is the token, or why there is none. One that could not be renewed is used to its end. The caller holds mu.
func (own *relayToken) answer(now time.Time) (string, error) {
	if own.failure != nil && !now.Before(own.expires) {
		return "", own.failure
	}
	return own.token, nil
}

// forget drops the token for the relay of a pod that is gone.
func (t *relayTokens) forget(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byPod, pod)
}
