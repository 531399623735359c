// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/tools"
)

// What a model is told of its workspace. It does not say whether that runs, nor where its files are: what changes from
// step to step would make providers read the whole prompt again.
const (
	ownWorkspace = "You have a workspace: a machine of your own with files and a shell, which your tools for files and " +
		"commands work in. "
	itStops = "It starts with the first call that needs it. When it is idle for a while it is stopped: its " +
		"commands end, and "
	keepsStorage = itStops + "files outside its storage are gone. "
	keepsNothing = itStops + "all of its files are gone. "
	inWorkspace  = "Paths are relative to its directory. If it has an AGENTS.md, you see that with the first results: " +
		"follow it."
	sharedWorkspace = "You share a workspace with the agent that gave you this task: a machine with files and a shell, " +
		"which your tools for files and commands work in. Paths are relative to its directory."
	noWorkspace = "You have no workspace yet. If a task needs files or commands, create one: see list_templates, " +
		"read_template and create_workspace."
)

// toolGuidance are the blocks of the system message about tools. The advisor is not told how to ask itself.
func toolGuidance(chat *v1alpha1.Chat, registry *tools.Registry) []string {
	if chat.Status.Generation.Action == v1alpha1.ActionExecuteTools {
		return nil
	}
	return slices.Concat(workspaceGuidance(chat, registry), advisor.Guidance(chat), modeGuidance(chat))
}

// What a model is told of the mode of its chat. It is not what keeps the mode.
const (
	planMode = "You plan: find out what there is to know, then call propose_plan. Until people approve a plan you " +
		"change nothing: you have only tools that look, and what might change something waits for people first. Ask them " +
		"with ask_user_question what only they can decide."
	exploreMode = "You explore: you have only tools that look. Report what you find; change nothing."
)

func modeGuidance(chat *v1alpha1.Chat) []string {
	switch chat.ModeInForce() {
	case v1alpha1.ModePlan:
		return []string{planMode}
	case v1alpha1.ModeExplore:
		return []string{exploreMode}
	}
	return nil
}

// workspaceGuidance is what the model is told of the workspace that its tools work in, or that it may create.
func workspaceGuidance(chat *v1alpha1.Chat, registry *tools.Registry) []string {
	offered := registry.Suited(chat)
	switch {
	case chat.Status.Internal.Attempt.HasWorkspace && slices.ContainsFunc(offered, worksThere):
		if chat.Spec.ParentRef != nil {
			return []string{sharedWorkspace}
		}
		return []string{ownWorkspace + lasting(chat.Spec.Workspace) + inWorkspace}
	case slices.ContainsFunc(offered, creates):
		return []string{noWorkspace}
	}
	return nil
}

// lasting is how long the workspace and its files last.
func lasting(w *v1alpha1.WorkspaceSource) string {
	switch {
	case w == nil:
		return keepsStorage
	case w.PodRef != nil:
		return "" // Nobody stops it.
	case w.PodTemplateRef != nil && w.PodTemplateRef.Storage == nil,
		w.PodTemplateSelector != nil && w.PodTemplateSelector.Storage == nil:
		return keepsNothing
	}
	return keepsStorage
}

func worksThere(d tools.Definition) bool { return d.NeedsWorkspace }

func creates(d tools.Definition) bool { return d.Name == string(v1alpha1.BuiltInCreateWorkspace) }
