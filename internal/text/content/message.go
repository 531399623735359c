// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import "parley.dev/parley/api/v1alpha1"

// HashKey is where a message in the manager's cache keeps the hash of the content that was left out. It is no valid key
// of an annotation, so that no object of the API server can have it.
const HashKey = "<content>"

// Of is the hash of what a User message says, be it read from the manager's cache or from the API server.
func Of(m *v1alpha1.ChatMessage) string {
	if hash, ok := m.Annotations[HashKey]; ok {
		return hash
	}
	return Hash(&m.Spec)
}
