// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// brings creates a message with a client's result of a call.
func brings(name, id string) step {
	return creates(chattest.Brings(chatName, name, v1beta1.ToolResult{ID: id, Output: "1"}))
}

// decides creates a decision about a call.
func decides(name, id string, decision v1beta1.ApprovalDecision) step {
	return creates(chattest.Decides(chatName, name, id, decision))
}

// archives puts the chat away or takes it back.
func archives(archived bool) step {
	return changesChat(func(c *v1beta1.Chat) { c.Spec.Archived = archived })
}
