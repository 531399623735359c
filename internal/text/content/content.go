// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package content computes the hash of a User message's content, by which edits are found: the manager's cache keeps it
// in place of the content, and generation pods check that they read what was committed. It is pure.
package content

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1beta1"
)

// HashKey is the key of the hash of a message in the manager's cache, whose content is dropped. It is no valid key of
// an annotation, so that no object of the API server can have it.
const HashKey = "<content>"

// FilesKey is the key of the digests of a message's stored files in the manager's cache. It is no valid key, too.
const FilesKey = "<files>"

// StoredFiles are the digests of the files in the object storage that a message names, from the manager's cache or from
// the API server.
func StoredFiles(m *v1beta1.ChatMessage) (digests []string) {
	if kept := m.Annotations[FilesKey]; kept != "" {
		return strings.Split(kept, ",")
	}
	for i := range m.Spec.Parts {
		if file := m.Spec.Parts[i].File; file != nil && file.Stored != nil {
			digests = append(digests, file.Stored.SHA256)
		}
	}
	return digests
}

// Of is the hash of a message from the manager's cache or from the API server: of what it said before a redaction,
// which is no edit.
func Of(m *v1beta1.ChatMessage) string {
	if hash, ok := m.Annotations[HashKey]; ok {
		return hash
	}
	hash := Hash(&m.Spec)
	if before, now, _ := strings.Cut(m.Annotations[v1beta1.AnnotationRedacted], "/"); now == hash {
		return before
	}
	return hash
}

// Redacted is the value of the annotation of a message that says, after a redaction, what is in spec.
func Redacted(m *v1beta1.ChatMessage, spec *v1beta1.ChatMessageSpec) string {
	return Of(m) + "/" + Hash(spec)
}

// Hash is the hash of a message's content, the texts and files of its parts, and its history: 32 hexadecimal digits.
func Hash(spec *v1beta1.ChatMessageSpec) string {
	h := sha256.New()
	_, _ = h.Write([]byte(spec.Content)) // A hash never fails.
	for i := range spec.Parts {
		if text := spec.Parts[i].Text; text != nil {
			_, _ = h.Write([]byte("\x00" + *text))
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
	return fmt.Sprintf("%x", h.Sum(nil)[:16])
}
