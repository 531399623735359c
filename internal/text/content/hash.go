// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package content says by a hash what a User message says, so that edits are found without comparing texts: the manager
// keeps the hash in place of the text, and a generation pod checks that it reads what was committed. It is pure.
package content

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"parley.dev/parley/api/v1alpha1"
)

// Hash of what a User message says: its content, the texts and files of its parts, and its history. It is 32
// hexadecimal digits.
func Hash(spec *v1alpha1.ChatMessageSpec) string {
	h := sha256.New()
	_, _ = h.Write([]byte(spec.Content)) // A hash takes everything.
	for i := range spec.Parts {
		if text := spec.Parts[i].Text; text != nil {
			_, _ = h.Write([]byte{0})
			_, _ = h.Write([]byte(*text))
		}
		if file := spec.Parts[i].File; file != nil {
			_, _ = h.Write([]byte{1})
			_ = json.NewEncoder(h).Encode(file) // A file's fields always encode.
		}
	}
	for i := range spec.History {
		_, _ = h.Write([]byte{2})
		_ = json.NewEncoder(h).Encode(&spec.History[i]) // Its fields always encode.
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
