// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// object is one that a chat refers to.
type object struct {
	kind schema.GroupKind
	key  types.NamespacedName
}

// awaited is which chats wait for which objects of other projects. A chat is put here before it looks, so that no
// change is lost between the two. The zero value is empty. It is safe for concurrent use.
type awaited struct {
	mu    sync.Mutex
	chats map[types.NamespacedName]map[object]bool
}

// put has the chat wait for the object.
func (a *awaited) put(chat types.NamespacedName, o object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.chats == nil {
		a.chats = map[types.NamespacedName]map[object]bool{}
	}
	if a.chats[chat] == nil {
		a.chats[chat] = map[object]bool{}
	}
	a.chats[chat][o] = true
}

// forget has the chat wait for none.
func (a *awaited) forget(chat types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.chats, chat)
}

// by are the chats that wait for the object.
func (a *awaited) by(o object) (requests []reconcile.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for chat, objects := range a.chats {
		if objects[o] {
			requests = append(requests, reconcile.Request{NamespacedName: chat})
		}
	}
	return requests
}
