// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/compaction"
)

// withWorkspaceContext puts what the workspace says about how to work in it beside the results of the first calls that
// worked there. So the model reads it from the next step on, always the same, until a summary takes its place.
func (p *Performer) withWorkspaceContext(ctx context.Context, o Outcome, messages []v1alpha1.ChatMessage,
	calls []v1alpha1.ToolCall) Outcome {
	read := p.steps.options.WorkspaceContext
	if read == nil || ctx.Err() != nil || o.Kind != v1alpha1.OutcomeCompleted ||
		!p.chat.Status.Internal.Attempt.HasWorkspace || !p.steps.options.Tools.NeedWorkspace(p.chat, calls) ||
		slices.ContainsFunc(compaction.View(messages), hasContext) {
		return o
	}
	files, answered := read(ctx, p.chat)
	with, fits := collect.WithFiles(o.Content, files)
	if !answered || !fits {
		return o // It is read with the results of the next calls.
	}
	o.Content = with
	if o.Content.Workspace == nil {
		o.Content.Workspace = &v1alpha1.WorkspaceChange{}
	}
	o.Content.Workspace.ContextRead = true
	return o
}

func hasContext(m v1alpha1.ChatMessage) bool {
	g := m.Spec.Generation
	return g != nil && g.Workspace != nil && g.Workspace.ContextRead
}
