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

// withWorkspaceContext adds the instructions and skills of the workspace to the results of the first calls in it, and
// of the first calls after a person has requested them again. The model then reads them in each step, until a summary
// replaces the message.
func (p *Performer) withWorkspaceContext(ctx context.Context, o Outcome, messages []v1alpha1.ChatMessage,
	calls []v1alpha1.ToolCall) Outcome {
	read, view := p.steps.options.WorkspaceContext, compaction.View(messages)
	if read == nil || ctx.Err() != nil || o.Kind != v1alpha1.OutcomeCompleted ||
		!p.chat.Status.Internal.Attempt.HasWorkspace || !p.steps.options.Tools.NeedWorkspace(p.chat, calls) ||
		slices.ContainsFunc(view, func(m v1alpha1.ChatMessage) bool { return hasContext(p.chat, &m) }) {
		return o
	}
	files, answered := read(ctx, p.chat)
	with, fits := collect.WithFiles(o.Content, append(files, removed(view, files)...))
	if !answered || !fits {
		return o // The next calls try again.
	}
	o.Content = with
	if o.Content.Workspace == nil {
		o.Content.Workspace = &v1alpha1.WorkspaceChange{}
	}
	o.Content.Workspace.ContextRead = true
	return o
}

// hasContext reports whether a message holds the context, read after the last request for it. A message of the version
// of that request may have been read before.
func hasContext(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	return holdsContext(m) && m.Spec.Generation.HistoryVersion > chat.Status.Internal.ContextRefreshedVersion
}

func holdsContext(m *v1alpha1.ChatMessage) bool {
	g := m.Spec.Generation
	return g != nil && g.Workspace != nil && g.Workspace.ContextRead
}

// removed replaces the files of an earlier context that no longer exist, so that the model does not rely on them.
func removed(view []v1alpha1.ChatMessage, files []v1alpha1.MessageFile) (gone []v1alpha1.MessageFile) {
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

// goneText replaces a removed file.
const goneText = "[The workspace no longer has this: what it said before no longer applies.]\n"
