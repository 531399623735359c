// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/content"
)

// hashKey is where a message in the cache keeps the hash of the content that was left out. It is no valid key of an
// annotation, so that no object of the API server can have it.
const hashKey = "<content>"

// ContentHash is a hash of what a User message says, be it read from the cache or from the API server.
func ContentHash(m *v1alpha1.ChatMessage) string {
	if hash, ok := m.Annotations[hashKey]; ok {
		return hash
	}
	return content.Hash(&m.Spec)
}
