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
	// keysRefetch is the least time between two requests for keys, so that tokens with invented key ids do not overload
	// the API server.
	keysRefetch = 10 * time.Second
	// keysMaxAge is when keys are requested although all key ids are known, so that a withdrawn key is removed.
	keysMaxAge = time.Hour
	// keysPatience is how long a reader waits for requested keys.
	keysPatience = 2 * time.Second
)

// IssuerKeys are the keys that sign the cluster's service-account tokens. The relay has no credentials to fetch them:
// the generator does when Wanted returns, and sends them to Put. They are kept in a file, so that a restarted relay can
// authenticate its readers while the generator is down. It is safe for concurrent use.
type IssuerKeys struct {
	// File has the key set; empty: it is not kept.
	File string
	// Now returns the current time.
	Now func() time.Time
	// Patience is how long a reader waits for requested keys, default 2 s.
	Patience time.Duration

	mu      sync.Mutex
	read    bool // whether the file has been read
	keys    jose.JSONWebKeySet
	edition int           // how often keys have come
	since   time.Time     // when keys came last
	asked   time.Time     // when they were requested last, or came
	wanted  bool          // whether they were requested and have not come
	changed chan struct{} // closed and replaced when keys come, or are requested
}

// Key finds the keys with an id. If there is none, or the keys are old, it requests newer ones, at most every ten
// seconds, and waits for them briefly. Old keys are valid until newer ones come, so that streams work while the API
// server is away.
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

// Put sets the key set that the issuer publishes. Only public keys are kept.
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

// Wanted waits until keys are needed: there are none, a token names an unknown one, or they are old.
func (k *IssuerKeys) Wanted(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.load()
	return k.await(ctx, func() bool { return k.wanted || k.since.IsZero() })
}

// await waits until done reports true. The caller holds mu, which is released while it waits.
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

// ask requests keys, unless they were requested a moment ago. The caller holds mu.
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

// load reads the keys of an earlier process of the relay, once. If it cannot, the generator sends them again. The
// caller holds mu.
func (k *IssuerKeys) load() {
	if k.read {
		return
	}
	k.read = true
	set, _ := os.ReadFile(k.File) // An empty set is no set of keys.
	keys, err := satoken.PublicKeys(set)
	if err != nil {
		return
	}
	if info, err := os.Stat(k.File); err == nil {
		k.keys, k.since = keys, info.ModTime()
	}
}

// save writes the set for the relay's next process, atomically. The caller holds mu.
func (k *IssuerKeys) save(set []byte) error {
	if k.File == "" {
		return nil
	}
	err := os.WriteFile(k.File+".new", set, 0o600)
	if err == nil {
		err = os.Rename(k.File+".new", k.File)
	}
	if err != nil {
		return fmt.Errorf("keeping the issuer's keys: %w", err)
	}
	return nil
}
