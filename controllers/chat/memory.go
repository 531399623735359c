// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
)

// memory is what this process remembers of chats between reconciles. Losing any of it is harmless. The zero value is
// empty.
type memory struct {
	written written
	deleted deleted
	chains  chains
	costs   subChatCosts
	waits   reportedWaits
	idle    idleChats
	// archives are the chats that could not be archived.
	archives archiveFailures
	// begun are the archives that this process has written.
	begun begunArchives
	// shares are what readers of chats were granted.
	shares grants
}

// forget drops a chat that is gone.
func (m *memory) forget(key types.NamespacedName) {
	m.written.forget(key)
	m.deleted.forget(key)
	m.chains.forget(key)
	m.costs.retain(key, nil)
	m.waits.forget(key)
	m.archives.forget(key)
}

// chains remembers the UIDs of the chats whose histories were found whole, so that one is looked at only when this
// process first meets the chat and when one of its messages has been deleted.
type chains struct {
	mu    sync.Mutex
	whole map[types.NamespacedName]types.UID
}

func (c *chains) isWhole(chat *v1beta1.Chat) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.whole[keyOf(chat)] == chat.UID
}

func (c *chains) foundWhole(chat *v1beta1.Chat) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.whole == nil {
		c.whole = map[types.NamespacedName]types.UID{}
	}
	c.whole[keyOf(chat)] = chat.UID
}

// forget makes the next reconcile verify the history.
func (c *chains) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.whole, key)
}

// reportedWaits is which wait of each chat an Event has been made of. A manager that starts makes an Event once more,
// which the API server's clients count as the same.
type reportedWaits struct{ chats sync.Map }

// reportedWait identifies a wait.
type reportedWait struct {
	ends   v1beta1.WaitFor
	reason string
	since  int64
}

// report remembers the wait, and reports whether it is a new one. nil forgets the last one.
func (r *reportedWaits) report(chat types.NamespacedName, wait *v1beta1.ChatWait) bool {
	if wait == nil {
		r.forget(chat)
		return false
	}
	now := reportedWait{wait.For, wait.Reason, wait.Since.Unix()}
	before, _ := r.chats.Swap(chat, now)
	return before != now
}

func (r *reportedWaits) forget(chat types.NamespacedName) { r.chats.Delete(chat) }
