// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/netguard/limit"
)

const (
	// cacheMessages and cacheBytes bound what is kept of the newest messages.
	cacheMessages = 1024
	cacheBytes    = 64 << 20
	// maxFetches is how many messages are fetched at a time, so that many followers of long histories leave the API
	// server to others.
	maxFetches = 16
	// fetchTimeout bounds one of them.
	fetchTimeout = 10 * time.Second
)

// GetMessage fetches a ChatMessage from the API server.
type GetMessage func(ctx context.Context, namespace, name string) (*v1alpha1.ChatMessage, error)

// messages fetches committed messages, each once for all who follow the chat at the same time. What it has kept of a
// message that people can edit, or delete and create again, counts only for those who can tell that the same commit is
// meant. It implements follow.Messages.
type messages struct {
	get      GetMessage
	cached   GetMessage
	fetches  limit.Limiter
	fetching singleflight.Group

	mu    sync.Mutex
	known *lru.Cache // of *follow.Committed
	bytes int        // that they have
	looks *cache.LRUExpireCache
}

// newMessages returns messages that are fetched by get, or by cached where that is as good; nil: never.
func newMessages(get, cached GetMessage) *messages {
	m := &messages{get: get, cached: cached, fetches: limit.New(maxFetches),
		looks: cache.NewLRUExpireCache(maxLooks)}
	m.known = lru.NewWithEvictionFunc(cacheMessages, func(_ lru.Key, gone any) {
		m.bytes -= len(gone.(*follow.Committed).Data)
	})
	return m
}

// Get implements follow.Messages.
func (m *messages) Get(ctx context.Context, chat *v1alpha1.Chat, place follow.Place) (*follow.Committed, error) {
	key := fmt.Sprintf("%s/%d/%s", chat.UID, place.Index, place.Name)
	if found := m.lookup(key, place.Version); found != nil {
		return found, nil
	}
	// A fetch that began for those who saw an older history may bring what was there before an edit.
	result := m.fetching.DoChan(fmt.Sprintf("%s@%d", key, chat.Status.History.Version), func() (any, error) {
		if found := m.lookup(key, place.Version); found != nil { // Another fetch has ended since.
			return found, nil
		}
		fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return m.fetch(fetching, chat, key, place)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*follow.Committed), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *messages) fetch(ctx context.Context, chat *v1alpha1.Chat, key string, place follow.Place) (*follow.Committed,
	error) {
	msg, err := m.certain(ctx, chat, place.Name)
	if err != nil {
		return nil, err
	}
	committed, err := follow.Commit(chat, msg, place)
	if err != nil {
		return nil, err
	}
	m.keep(key, committed)
	return committed, nil
}

// certain reads a message that was committed: from the API server's cache, if that has what was committed for certain.
func (m *messages) certain(ctx context.Context, chat *v1alpha1.Chat, name string) (*v1alpha1.ChatMessage, error) {
	if m.cached != nil && history.MayBeCertain(chat, name) {
		if msg, err := m.one(ctx, m.cached, chat.Namespace, name); err == nil && history.Certain(chat, msg) {
			return msg, nil
		}
	}
	return m.read(ctx, chat.Namespace, name)
}

// read reads a message as it is now.
func (m *messages) read(ctx context.Context, namespace, name string) (*v1alpha1.ChatMessage, error) {
	return m.one(ctx, m.get, namespace, name)
}

// one reads a message, as one of a few at a time.
func (m *messages) one(ctx context.Context, get GetMessage, namespace, name string) (*v1alpha1.ChatMessage, error) {
	release, err := m.fetches.Acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	msg, err := get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("getting message %s: %w", name, err)
	}
	return msg, nil
}

// lookup finds what was kept of a message: a generated one, which never changes, or one whose commit made that version.
func (m *messages) lookup(key string, version int64) *follow.Committed {
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.known.Get(key)
	if !ok {
		return nil
	}
	message := found.(*follow.Committed)
	if message.Base == 0 && message.Version != version {
		return nil
	}
	return message
}

func (m *messages) keep(key string, message *follow.Committed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.known.Get(key); ok {
		if message.Version <= known.(*follow.Committed).Version {
			return
		}
		m.known.Remove(key)
	}
	m.bytes += len(message.Data)
	m.known.Add(key, message)
	for m.bytes > cacheBytes {
		m.known.RemoveOldest()
	}
}
