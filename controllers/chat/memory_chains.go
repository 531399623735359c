// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
)

// chains remembers which chats' histories were found whole, so that one is looked at only when this process first meets
// the chat and when one of its messages has been deleted.
type chains struct {
	mu    sync.Mutex
	whole map[types.NamespacedName]types.UID
}

func (c *chains) isWhole(chat *v1alpha1.Chat) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.whole[keyOf(chat)] == chat.UID
}

func (c *chains) foundWhole(chat *v1alpha1.Chat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.whole == nil {
		c.whole = map[types.NamespacedName]types.UID{}
	}
	c.whole[keyOf(chat)] = chat.UID
}

// invalidate makes the next reconcile verify the history: a message of the chat was deleted.
func (c *chains) invalidate(key types.NamespacedName) { c.forget(key) }

// forget drops a chat.
func (c *chains) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.whole, key)
}
