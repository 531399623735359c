// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/text/content"
)

// MayBeCertain reports whether Certain can hold for a message of that name. For any other, an old view is not worth the
// reading, nor for a chat from which text was removed: an old view has that text.
func MayBeCertain(chat *v1beta1.Chat, name string) bool {
	if _, redacted := chat.Annotations[v1beta1.AnnotationRedacted]; redacted {
		return false
	}
	return CommittedHash(chat, name) != "" || fence.ChatOfResult(name) == chat.Name
}

// Certain reports whether a message says what the chat has committed under its name, however old the view of it is: it
// was generated for this chat, and so never changes, or it is one of which the chat's status says what was committed.
// Of others only the API server's newest word tells.
func Certain(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	if g := m.Spec.Generation; g != nil {
		return g.ChatUID == string(chat.UID)
	}
	commit := recorded(chat, m)
	return commit != nil && commit.ContentHash == content.Of(m)
}

// CommittedHash is the hash of what the User message of that name said when it was committed, as the chat's status
// says it; empty where it says nothing of it.
func CommittedHash(chat *v1beta1.Chat, name string) string {
	if commit := RecordedBy(chat, name); commit != nil {
		return commit.ContentHash
	}
	return ""
}
