// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
)

// Before is a position from which a message is told, and what follows it: right before it as far as the chat or the
// message says where it stands; else at the end of the history, since the message is in none yet. The message may be
// nil.
func Before(chat *v1alpha1.Chat, message *v1alpha1.ChatMessage) Position {
	node := history.Node{Index: chat.Status.History.Length}
	if message != nil {
		if n := history.Of(chat, message); n.Placed && history.MayHold(chat, message) {
			node = n
		}
	}
	if node.Index == 0 {
		return Position{}
	}
	return Position{Chat: identity(chat.UID), Version: chat.Status.History.Version, Number: 0, Attempt: 1,
		Length: node.Index}
}
