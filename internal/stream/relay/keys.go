// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"parley.dev/parley/internal/kube/satoken"
)

const (
	// keysRefetch is the least time between two requests for keys: a token with an invented key id must not cost the API
	// server more.
	keysRefetch = 10 * time.Second
	// keysMaxAge is when keys are asked for although all key ids are known, so that a withdrawn key stops counting.
	keysMaxAge = time.Hour
	// keysPatience is how long a reader waits for keys that were asked for.
	keysPatience = 2 * time.Second
)

// IssuerKeys are the keys that sign the cluster's service-account tokens. The relay has no credentials to fetch them
// with: the generator beside it does, when Wanted returns, and hands them over with Put. They are kept in a file, so
// that a relay that is restarted while its generator is down still knows who its readers are.
// It is safe for concurrent use.
type IssuerKeys struct {
	// File keeps the key set; empty: nothing does.
	File string
	// Now returns the current time.
	Now func() time.Time
	// Patience is how long a reader waits for keys that were asked for, default 2 s.
	Patience time.Duration

	mu      sync.Mutex
	read    bool // whether the file has been read
	keys    jose.JSONWebKeySet
	edition int           // how often keys have come
	since   time.Time     // when keys came last
	asked   time.Time     // when they were asked for last, or came
	wanted  bool          // that they are, and nobody has taken the request up
	changed chan struct{} // closed and replaced when keys come, or are wanted
}

// Key finds the keys with an id. If there is none, or what is known is old, it asks for newer ones, at most every ten
// seconds, and waits for them a little. Old keys count until newer ones come: better an old key than no streams while
// the API server is away.
func (k *IssuerKeys) Key(ctx context.Context, id string) ([]jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	if len(k.keys.Key(id)) == 0 || k.Now().Sub(k.since) >= keysMaxAge {
		k.ask()
		if patience := cmp.Or(k.Patience, keysPatience); k.Now().Sub(k.asked) < patience {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			before := k.edition
			_ = k.await(ctx, func() bool { return k.edition > before })
		}
	}
	found := k.keys.Key(id)
	if len(found) == 0 && k.since.IsZero() {
		return nil, satoken.ErrNoKeys
	}
	return found, nil
}

// Put takes a key set that the issuer publishes. Of keys that are no public ones none is kept.
func (k *IssuerKeys) Put(set []byte) error {
	keys, err := satoken.PublicKeys(set)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	now := k.Now()
	k.keys, k.since, k.asked, k.wanted = keys, now, now, false
	k.edition++
	k.notify()
	return k.save(set)
}

// Wanted waits until keys are needed: none are known, a token names an unknown one, or those that are known are old.
func (k *IssuerKeys) Wanted(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	return k.await(ctx, func() bool { return k.wanted || k.since.IsZero() })
}

// await waits until done reports true. The caller holds mu, which others can take in between.
func (k *IssuerKeys) await(ctx context.Context, done func() bool) error {
	for !done() {
		if k.changed == nil {
			k.changed = make(chan struct{})
		}
		changed := k.changed
		k.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		k.mu.Lock()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// ask says that keys are wanted, unless that was said a moment ago. The caller holds mu.
func (k *IssuerKeys) ask() {
	if now := k.Now(); now.Sub(k.asked) >= keysRefetch {
		k.asked, k.wanted = now, true
		k.notify()
	}
}

// notify wakes all who wait for a change. The caller holds mu.
func (k *IssuerKeys) notify() {
	if k.changed != nil {
		close(k.changed)
		k.changed = nil
	}
}

// load reads the keys that an earlier process of the relay has kept, once. If it cannot, the generator brings them
// again. The caller holds mu.
func (k *IssuerKeys) load() {
	if k.read {
		return
	}
	k.read = true
	set, _ := os.ReadFile(k.File) // Nothing is no set of keys.
	keys, err := satoken.PublicKeys(set)
	if err != nil {
		return
	}
	if info, err := os.Stat(k.File); err == nil {
		k.keys, k.since = keys, info.ModTime()
	}
}

// save keeps the set for the relay's next life, whole or not at all. The caller holds mu.
func (k *IssuerKeys) save(set []byte) error {
	if k.File == "" {
		return nil
	}
	if err := os.WriteFile(k.File+".new", set, 0o600); err != nil {
		return fmt.Errorf("keeping the issuer's keys: %w", err)
	}
	if err := os.Rename(k.File+".new", k.File); err != nil {
		return fmt.Errorf("keeping the issuer's keys: %w", err)
	}
	return nil
}
