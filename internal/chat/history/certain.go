// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/text/content"
)

// MayBeCertain reports whether Certain can hold for a message of that name. For any other, an old view is not worth the
// reading.
func MayBeCertain(chat *v1alpha1.Chat, name string) bool {
	return CommittedHash(chat, name) != "" || fence.ChatOfResult(name) == chat.Name
}

// Certain reports whether a message says what the chat has committed under its name, however old the view of it is: it
// was generated for this chat, and so never changes, or it is one of which the chat's status says what was committed.
// Of others only the API server's newest word tells.
func Certain(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	if g := m.Spec.Generation; g != nil {
		return g.ChatUID == string(chat.UID)
	}
	committed := CommittedHash(chat, m.Name)
	return committed != "" && committed == content.Hash(&m.Spec)
}

// CommittedHash is the hash of what the User message of that name said when it was committed, as the chat's status
// says it: it does of the message of the chat's turn, and of that of the turn before until the message does itself. It
// is empty of any other.
func CommittedHash(chat *v1alpha1.Chat, name string) string {
	if t := chat.Status.Turn; t != nil && t.Message == name {
		return chat.Status.Internal.Turn.ContentHash
	}
	if p := chat.Status.Internal.PreviousTurn; p != nil && p.Message == name {
		return p.ContentHash
	}
	return ""
}

// CallsGivenUpBefore says why calls were given up for the User message of that name, as the chat's status says it, of
// the same messages as CommittedHash; recorded is false of any other, which says it itself.
func CallsGivenUpBefore(chat *v1alpha1.Chat, name string) (why v1alpha1.CallsGivenUp, recorded bool) {
	if t := chat.Status.Turn; t != nil && t.Message == name {
		return chat.Status.Internal.Turn.CallsGivenUpBefore, true
	}
	if p := chat.Status.Internal.PreviousTurn; p != nil && p.Message == name {
		return p.CallsGivenUpBefore, true
	}
	return "", false
}
