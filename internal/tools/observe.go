// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
)

// Observer is told of a call before it is run. It returns the context to run it in, and what to tell of its result.
type Observer func(ctx context.Context, call *v1alpha1.ToolCall, builtIn bool) (context.Context, func(*v1alpha1.ToolResult))

type observerKey struct{}

// WithObserver returns a context in which Execute tells the observer of each call.
func WithObserver(ctx context.Context, observe Observer) context.Context {
	return context.WithValue(ctx, observerKey{}, observe)
}

// Has reports whether there is a built-in tool of that name.
func (r *Registry) Has(name string) bool { return r.tools[name] != nil }

func (r *Registry) observe(ctx context.Context, call *v1alpha1.ToolCall) (context.Context, func(*v1alpha1.ToolResult)) {
	if observe, ok := ctx.Value(observerKey{}).(Observer); ok {
		return observe(ctx, call, r.Has(call.Name))
	}
	return ctx, func(*v1alpha1.ToolResult) {}
}

type outputKey struct{}

// WithOutput is a context in which a tool can show what it has to say while it runs.
func WithOutput(ctx context.Context, show func(piece string)) context.Context {
	return context.WithValue(ctx, outputKey{}, show)
}

// Show shows a piece of what the tool has to say while it runs. What it shows is a preview: only its result counts.
func Show(ctx context.Context, piece string) {
	if show, ok := ctx.Value(outputKey{}).(func(string)); ok {
		show(piece)
	}
}
