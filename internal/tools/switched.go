// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/toolpolicy"
)

// Switched is a Tool that a chat turns on by a field of its own, and that spec.tools allows.
type Switched interface {
	Tool
	// On reports whether the chat has turned it on.
	On(chat *v1alpha1.Chat) bool
}

// offers reports whether the chat may call the tool.
func offers(chat *v1alpha1.Chat, tool Tool) bool {
	switched, ok := tool.(Switched)
	return (!ok || switched.On(chat)) && toolpolicy.Allows(chat.Spec.Tools, tool.Name())
}
