// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import "parley.dev/parley/api/v1alpha1"

// Switched is a Tool that a chat turns on by a field of its own, whatever spec.tools.builtIn.allow says.
type Switched interface {
	Tool
	// On reports whether the chat has turned it on.
	On(chat *v1alpha1.Chat) bool
}

// offers reports whether the chat may call the tool.
func offers(chat *v1alpha1.Chat, tool Tool) bool {
	if switched, ok := tool.(Switched); ok {
		return switched.On(chat)
	}
	return allows(chat.Spec.Tools, tool.Name())
}
