// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
)

// Switched is a Tool that a chat turns on by a field of its own, whatever spec.tools.builtIn.allow says.
type Switched interface {
	Tool
	// On reports whether the chat has turned it on.
	On(chat *v1alpha1.Chat) bool
}

// offers reports whether the chat that the tool would run for may call it.
func offers(ctx context.Context, spec *v1alpha1.ChatTools, tool Tool) bool {
	if switched, ok := tool.(Switched); ok {
		chat := Caller(ctx)
		return chat != nil && switched.On(chat)
	}
	return allows(spec, tool.Name())
}
