// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/content"
	"parley.dev/parley/internal/fence"
)

// MayBeCertain reports whether Certain can hold for a message of that name. For any other, an old view is not worth the
// reading.
func MayBeCertain(chat *v1alpha1.Chat, name string) bool {
	t := chat.Status.Turn
	return t != nil && t.Message == name || fence.ChatOfResult(name) == chat.Name
}

// Certain reports whether a message says what the chat has committed under its name, however old the view of it is: it
// was generated for this chat, and so never changes, or it is the message of the chat's turn and has the hash that was
// committed. Of others only the API server's newest word tells.
func Certain(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	if g := m.Spec.Generation; g != nil {
		return g.ChatUID == string(chat.UID)
	}
	t := chat.Status.Turn
	return t != nil && t.Message == m.Name && chat.Status.Internal.Turn.ContentHash == content.Hash(&m.Spec)
}
