// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"encoding/base64"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/prompt/compaction"
	"parley.dev/parley/internal/generation/workspaces"
)

// withWorkspaceContext puts what the workspace says about how to work in it beside the results of the first calls that
// worked there, and of the first ones after a person has asked for it again. So the model reads it from the next step
// on, always the same, until a summary takes its place.
func (p *Performer) withWorkspaceContext(ctx context.Context, o Outcome, messages []v1alpha1.ChatMessage,
	calls []v1alpha1.ToolCall) Outcome {
	read, view := p.steps.options.WorkspaceContext, compaction.View(messages)
	if read == nil || ctx.Err() != nil || o.Kind != v1alpha1.OutcomeCompleted ||
		!p.chat.Status.Internal.Attempt.HasWorkspace || !p.steps.options.Tools.NeedWorkspace(p.chat, calls) ||
		slices.ContainsFunc(view, func(m v1alpha1.ChatMessage) bool { return hasContext(p.chat, &m) }) {
		return o
	}
	files, answered := read(ctx, p.chat)
	with, fits := collect.WithFiles(o.Content, append(files, withdrawn(view, files)...))
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

// hasContext reports whether a message holds the context, as it was after it was last asked for again. What was made
// for the very version of that request may have been read before it.
func hasContext(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	return holdsContext(m) && m.Spec.Generation.HistoryVersion > chat.Status.Internal.ContextRefreshedVersion
}

func holdsContext(m *v1alpha1.ChatMessage) bool {
	g := m.Spec.Generation
	return g != nil && g.Workspace != nil && g.Workspace.ContextRead
}

// withdrawn says of each file of the context that the model sees, and that is there no longer, that it is gone: else
// what it said would seem to hold.
func withdrawn(view []v1alpha1.ChatMessage, files []v1alpha1.MessageFile) (gone []v1alpha1.MessageFile) {
	for i := range view {
		if !holdsContext(&view[i]) {
			continue
		}
		for _, part := range view[i].Spec.Parts {
			named := func(f v1alpha1.MessageFile) bool { return f.Name == part.File.Name }
			if part.File == nil || !workspaces.IsContext(part.File.Name) ||
				slices.ContainsFunc(slices.Concat(files, gone), named) {
				continue
			}
			gone = append(gone, v1alpha1.MessageFile{Name: part.File.Name, MediaType: "text/markdown",
				Data: base64.StdEncoding.EncodeToString([]byte(goneText))})
		}
	}
	return gone
}

// goneText is what stands in place of a file that is gone.
const goneText = "[The workspace no longer has this: what it said before no longer applies.]\n"
