// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"parley.dev/parley/api/v1beta1"
)

// written remembers what this process wrote last to each chat, until the cache shows it, so that a pass does not decide
// from an older view and run into a conflict. Losing it is harmless: the conflict is met and the chat read again.
type written struct {
	mu    sync.Mutex
	chats map[types.NamespacedName]*v1beta1.Chat
	stale map[types.NamespacedName]bool
}

// put remembers the chat as the API server returned it.
func (w *written) put(chat *v1beta1.Chat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chats == nil {
		w.chats = map[types.NamespacedName]*v1beta1.Chat{}
	}
	w.chats[keyOf(chat)] = chat
	delete(w.stale, keyOf(chat))
}

// newest is the newer one of the cached chat and the one that was written last.
func (w *written) newest(cached *v1beta1.Chat) *v1beta1.Chat {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := w.chats[keyOf(cached)]
	if mine == nil || mine.UID != cached.UID || !older(cached.ResourceVersion, mine.ResourceVersion) {
		delete(w.chats, keyOf(cached))
		return cached
	}
	return mine
}

// overlay puts what was written last in the place of older chats of a list of one namespace: what a family has cost is
// known to this process before the cache shows it.
func (w *written) overlay(namespace string, chats []v1beta1.Chat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := map[string]*v1beta1.Chat{}
	for key, chat := range w.chats {
		if key.Namespace == namespace {
			mine[key.Name] = chat
		}
	}
	if len(mine) == 0 {
		return
	}
	for i := range chats {
		chat := mine[chats[i].Name]
		if chat != nil && chat.UID == chats[i].UID && older(chats[i].ResourceVersion, chat.ResourceVersion) {
			chats[i] = *chat
		}
	}
}

// invalidate makes the next read of the chat bypass the cache: neither that nor the own write is the newest.
func (w *written) invalidate(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.chats, key)
	if w.stale == nil {
		w.stale = map[types.NamespacedName]bool{}
	}
	w.stale[key] = true
}

// takeStale reports whether the next pass must read past the cache, once.
func (w *written) takeStale(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer delete(w.stale, key)
	return w.stale[key]
}

// forget drops a chat that is gone.
func (w *written) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.chats, key)
	delete(w.stale, key)
}

// older reports whether a resourceVersion is of an earlier write than the other.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// notOlder reports whether a resourceVersion is known to be of the other write or a later one.
func notOlder(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order >= 0
}

func keyOf(chat *v1beta1.Chat) types.NamespacedName {
	return types.NamespacedName{Namespace: chat.Namespace, Name: chat.Name}
}
