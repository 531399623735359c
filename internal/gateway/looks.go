// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
)

const (
	// lookAge is how long the beginning of a message that waits counts, so that all who follow a chat cost one look.
	lookAge = 5 * time.Second
	// maxLooks bounds what is kept of them.
	maxLooks = 1024
)

// Look implements follow.Queue.
func (m *messages) Look(ctx context.Context, chat *v1alpha1.Chat, name string) (stream.QueuedMessage, error) {
	key := "queue/" + string(chat.UID) + "/" + name
	if seen, ok := m.seen(key); ok {
		return seen, nil
	}
	result := m.fetching.DoChan(key, func() (any, error) {
		if seen, ok := m.seen(key); ok { // Another look has ended since.
			return seen, nil
		}
		fetching, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		msg, err := m.read(fetching, chat.Namespace, name)
		if err != nil {
			return nil, err
		}
		seen, err := follow.Queued(chat, msg)
		if err == nil {
			m.looks.Add(key, seen, lookAge)
		}
		return seen, err
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return stream.QueuedMessage{}, r.Err
		}
		return r.Val.(stream.QueuedMessage), nil
	case <-ctx.Done():
		return stream.QueuedMessage{}, ctx.Err()
	}
}

func (m *messages) seen(key string) (stream.QueuedMessage, bool) {
	seen, ok := m.looks.Get(key)
	if !ok {
		return stream.QueuedMessage{}, false
	}
	return seen.(stream.QueuedMessage), true
}
