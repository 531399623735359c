// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"parley.dev/parley/api/v1alpha1"
)

// hashKey is where a message in the cache keeps the hash of the content that was left out. It is no valid key of an
// annotation, so that no object of the API server can have it.
const hashKey = "<content>"

// ContentHash is a hash of what a User message says, be it read from the cache or from the API server.
func ContentHash(m *v1alpha1.ChatMessage) string {
	if hash, ok := m.Annotations[hashKey]; ok {
		return hash
	}
	h := sha256.New()
	_, _ = h.Write([]byte(m.Spec.Content)) // A hash takes everything.
	for i := range m.Spec.Parts {
		if text := m.Spec.Parts[i].Text; text != nil {
			_, _ = h.Write([]byte{0})
			_, _ = h.Write([]byte(*text))
		}
		if file := m.Spec.Parts[i].File; file != nil {
			_, _ = h.Write([]byte{1})
			_ = json.NewEncoder(h).Encode(file) // A file's fields always encode.
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
