// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
)

const (
	// cacheMessages and cacheBytes bound what is kept of the newest messages.
	cacheMessages = 1024
	cacheBytes    = 64 << 20
	// maxFetches is how many messages are fetched at a time, so that many followers of long histories leave the API
	// server to others.
	maxFetches = 32
	// fetchTimeout bounds one of them.
	fetchTimeout = 10 * time.Second
)

// GetMessage fetches a ChatMessage from the API server.
type GetMessage func(ctx context.Context, namespace, name string) (*v1alpha1.ChatMessage, error)

// messages fetches committed messages, each once for all who follow the chat at the same time. It implements
// follow.Messages.
type messages struct {
	get      GetMessage
	slots    chan struct{}
	fetching singleflight.Group

	mu    sync.Mutex
	order *list.List // of *cached, the last used first
	known map[string]*list.Element
	bytes int
}

type cached struct {
	key     string
	message *follow.Committed
}

func newMessages(get GetMessage) *messages {
	return &messages{get: get, slots: make(chan struct{}, maxFetches), order: list.New(), known: map[string]*list.Element{}}
}

// Get implements follow.Messages.
func (m *messages) Get(ctx context.Context, chat *v1alpha1.Chat, name string, index int64) (*follow.Committed, error) {
	key := fmt.Sprintf("%s/%d/%s", chat.UID, index, name)
	if found := m.lookup(key); found != nil {
		return found, nil
	}
	result := m.fetching.DoChan(key, func() (any, error) {
		fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return m.fetch(fetching, chat, key, name, index)
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

func (m *messages) fetch(ctx context.Context, chat *v1alpha1.Chat, key, name string, index int64) (*follow.Committed, error) {
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	msg, err := m.get(ctx, chat.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s: %w", name, follow.ErrMissing)
	}
	if err != nil {
		return nil, fmt.Errorf("get message %s: %w", name, err)
	}
	committed, err := follow.Commit(chat, msg, index)
	if err != nil {
		return nil, err
	}
	m.keep(key, committed)
	return committed, nil
}

func (m *messages) lookup(key string) *follow.Committed {
	m.mu.Lock()
	defer m.mu.Unlock()
	element := m.known[key]
	if element == nil {
		return nil
	}
	m.order.MoveToFront(element)
	return element.Value.(*cached).message
}

func (m *messages) keep(key string, message *follow.Committed) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[key] != nil {
		return
	}
	m.known[key] = m.order.PushFront(&cached{key: key, message: message})
	m.bytes += len(message.Data)
	for m.order.Len() > cacheMessages || m.bytes > cacheBytes {
		oldest := m.order.Remove(m.order.Back()).(*cached)
		delete(m.known, oldest.key)
		m.bytes -= len(oldest.message.Data)
	}
}
