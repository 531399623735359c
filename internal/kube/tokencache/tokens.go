// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokencache keeps tokens, such as those of service accounts, one for each audience: whoever is shown a token
// can use it nowhere else. They are renewed in the last fifth of their time.
package tokencache

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// mintPause is the least time between two requests for the token for one relay, after one that failed.
const mintPause = time.Second

// mintTimeout bounds one request for a token.
const mintTimeout = 10 * time.Second

// Mint asks the API server, or another issuer, for a token for an audience. It says when the token expires.
type Mint func(ctx context.Context, audience string) (token string, expires time.Time, err error)

// Cache keeps the tokens of one account. It is safe for concurrent use.
type Cache struct {
	mint    Mint
	now     func() time.Time
	minting singleflight.Group

	mu         sync.Mutex
	byAudience map[string]*token
}

// token for one audience.
type token struct {
	token          string
	renew, expires time.Time
	failed         time.Time // of the last try; zero if it went well
	failure        error
}

// New returns a cache.
func New(mint Mint, now func() time.Time) *Cache {
	return &Cache{mint: mint, now: now, byAudience: map[string]*token{}}
}

// Of returns the token for the audience. All who want it at once share one request,
// and each waits no longer than its ctx.
func (c *Cache) Of(ctx context.Context, audience string) (string, error) {
	own := c.entry(audience)
	if token, known, err := c.known(own, c.now()); known {
		return token, err
	}
	result := c.minting.DoChan(audience, func() (any, error) {
		now := c.now()
		if token, known, err := c.known(own, now); known { // Another request has ended since.
			return token, err
		}
		asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), mintTimeout) // Others wait for it, too.
		defer cancel()
		token, expires, err := c.mint(asking, audience)
		if err != nil {
			err = fmt.Errorf("getting a token for the audience %s: %w", audience, err)
		}
		return c.keep(own, now, token, expires, err)
	})
	select {
	case r := <-result:
		return r.Val.(string), r.Err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// entry is that of the audience. A new one replaces entries that have expired and were not renewed.
func (c *Cache) entry(audience string) *token {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.byAudience[audience]
	if own == nil {
		now := c.now()
		maps.DeleteFunc(c.byAudience, func(_ string, old *token) bool {
			return !old.expires.IsZero() && !now.Before(old.expires)
		})
		own = &token{}
		c.byAudience[audience] = own
	}
	return own
}

// known returns what is known of a token. It is not known if it is to be asked for.
func (c *Cache) known(own *token, now time.Time) (got string, known bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !now.Before(own.renew) && (own.failure == nil || now.Sub(own.failed) >= mintPause) {
		return "", false, nil
	}
	got, err = own.answer(now)
	return got, true, err
}

// keep keeps what came of a request that was made at that time.
func (c *Cache) keep(own *token, asked time.Time, minted string, expires time.Time, failure error) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if failure != nil {
		own.failed, own.failure = asked, failure
		return own.answer(asked)
	}
	own.token, own.expires, own.failure = minted, expires, nil
	own.renew = expires.Add(-expires.Sub(asked) / 5)
	return own.token, nil
}

// answer is the token, or why there is none. One that could not be renewed is used to its end. The caller holds mu.
func (own *token) answer(now time.Time) (string, error) {
	if own.failure != nil && !now.Before(own.expires) {
		return "", own.failure
	}
	return own.token, nil
}

// Forget drops the token for an audience that is no more.
func (c *Cache) Forget(audience string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byAudience, audience)
}
