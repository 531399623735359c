// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
)

// reportedWaits is which wait of each chat an Event has been made of. A manager that starts makes an Event once more,
// which the API server's clients count as the same. The zero value is empty. It is safe for concurrent use.
type reportedWaits struct {
	mu    sync.Mutex
	chats map[types.NamespacedName]reportedWait
}

// reportedWait identifies a wait.
type reportedWait struct {
	ends   v1alpha1.WaitFor
	reason string
	since  int64
}

// report remembers the wait, and reports whether it is a new one. nil forgets the last one.
func (r *reportedWaits) report(chat types.NamespacedName, wait *v1alpha1.ChatWait) bool {
	if wait == nil {
		r.forget(chat)
		return false
	}
	now := reportedWait{wait.For, wait.Reason, wait.Since.Unix()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.chats[chat] == now {
		return false
	}
	if r.chats == nil {
		r.chats = map[types.NamespacedName]reportedWait{}
	}
	r.chats[chat] = now
	return true
}

func (r *reportedWaits) forget(chat types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats, chat)
}
