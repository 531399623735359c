// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import "k8s.io/apimachinery/pkg/types"

// memory is what this process remembers of chats between reconciles. Losing any of it is harmless. The zero value is
// empty.
type memory struct {
	written written
	chains  chains
	deleted deleted
	awaited awaited
	waits   reportedWaits
}

// forget drops a chat that is gone.
func (m *memory) forget(key types.NamespacedName) {
	m.written.forget(key)
	m.chains.forget(key)
	m.deleted.forget(key)
	m.awaited.forget(key)
	m.waits.forget(key)
}
