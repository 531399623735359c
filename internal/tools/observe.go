// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
)

// Observer is told of a call before it is run. It returns the context to run it in, and what else to tell of it.
type Observer func(ctx context.Context, call *v1alpha1.ToolCall, builtIn bool) (context.Context, Watch)

// Watch is told what becomes of one call.
type Watch struct {
	// Show is told what the tool says while it runs, piece by piece.
	Show func(piece string)
	// End is told the result.
	End func(*v1alpha1.ToolResult)
}

func (o Observer) begin(ctx context.Context, call *v1alpha1.ToolCall, builtIn bool) (context.Context, Watch) {
	if o == nil {
		return ctx, Watch{Show: func(string) {}, End: func(*v1alpha1.ToolResult) {}}
	}
	return o(ctx, call, builtIn)
}
