// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
)

// prompt builds the prompt from the view of the history, or returns the outcome that ends the step. Call release when
// the prompt is no longer needed.
func (p *Performer) prompt(
	ctx context.Context, t *models.Target, view []v1beta1.ChatMessage,
) (built []fantasy.Message, release func(), ended *Outcome) {
	spec, status := &p.chat.Spec, &p.chat.Status
	from, namespace := p.steps.options.Sources, p.steps.options.Namespace
	in := prompt.Input{
		SystemPrompt: spec.SystemPrompt, SubChat: spec.ParentRef != nil, History: view,
		Extra:   toolGuidance(p.chat, p.steps.options.Tools),
		Dialect: provider.DialectOf(&t.Config.Spec), ResultBytes: tools.ResultLimit(limitOf(p.chat, t).Tokens),
		GoOn: status.Internal.Attempt.AfterEmptyReply && status.Generation.Action == v1beta1.ActionGenerateAssistant,
	}
	if t := status.Turn; t != nil {
		in.CallsCanceledReason = t.CallsCanceledReason
	}
	var err error
	in.Instructions, err = from.Instructions(ctx, namespace, spec.InstructionsFrom)
	if err == nil {
		in.Skills, err = p.skills(ctx)
	}
	held := &limit.Held{}
	if err == nil {
		held, err = p.hold(ctx, &in)
	}
	if err == nil {
		in.Files, err = from.Files(ctx, namespace, view)
	}
	switch {
	case Interrupted(ctx):
		held.Keep(0)
		return nil, nil, &Outcome{Kind: v1beta1.OutcomeInterrupted}
	case err != nil:
		held.Keep(0)
		return nil, nil, new(Failed(sourcesError(p.chat, err)))
	}
	built = prompt.Build(in)
	held.Keep(memoryOf(prompt.Bytes(built)))
	return built, func() { held.Keep(0) }, nil
}

// skills is the index of the chat's skills, for a model that can read them. An advisor cannot.
func (p *Performer) skills(ctx context.Context) (string, error) {
	if len(p.chat.Spec.SkillsFrom) == 0 || p.chat.Status.Generation.Action == v1beta1.ActionExecuteTools ||
		!isOffered(p.steps.options.Tools.Suited(p.chat), v1beta1.BuiltInReadSkill) {
		return "", nil
	}
	all, err := p.steps.options.Sources.Skills(ctx, p.steps.options.Namespace, p.chat.Spec.SkillsFrom)
	return skill.Index(skill.OfChat, all, false), err
}

// sourcesError explains why instructions, skills or stored files could not be read.
func sourcesError(chat *v1beta1.Chat, err error) *v1beta1.GenerationError {
	e := &v1beta1.GenerationError{
		Reason: v1beta1.ErrorInternal, Message: fmt.Sprintf("The instructions of chat %s could not be read", chat.Name),
		Advice: "Send a message to try again",
	}
	if missing, ok := errors.AsType[*sources.MissingError](err); ok {
		key := ""
		if missing.Key != "" {
			key = fmt.Sprintf(", key %q", missing.Key)
		}
		e.Reason = v1beta1.ErrorConfigMapNotFound
		e.Message = fmt.Sprintf("ConfigMap %s%s, which chat %s names in %s, cannot be used: %s",
			missing.ConfigMap, key, chat.Name, missing.Field, missing.Why)
		e.Advice = "Create it, or mark the entry as optional, then send a message to continue"
	}
	if gateway, ok := errors.AsType[*sources.GatewayError](err); ok {
		e.Message = fmt.Sprintf("The stored files of chat %s could not be read: %v", chat.Name, gateway)
		e.Advice = "Check that the gateway runs, and that generation pods can reach it and trust its certificate"
		e.Retryable = true
	}
	return e
}

// Guidance about the workspace. It does not depend on the state of the workspace: a prompt that changes with each step
// is not cached by providers.
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

// toolGuidance are the blocks of the system message about tools, which the advisor does not have.
func toolGuidance(chat *v1beta1.Chat, registry *tools.Registry) []string {
	if chat.Status.Generation.Action == v1beta1.ActionExecuteTools {
		return nil
	}
	return slices.Concat(workspaceGuidance(chat, registry), advisor.Guidance(chat), modeGuidance(chat))
}

// Guidance about the mode of the chat, which the offered tools enforce.
const (
	planMode = "You plan: find out what there is to know, then call propose_plan. Until people approve a plan you " +
		"change nothing: you have only tools that look, and what might change something waits for people first. Ask them " +
		"with ask_user_question what only they can decide."
	exploreMode = "You explore: you have only tools that look. Report what you find; change nothing."
)

func modeGuidance(chat *v1beta1.Chat) []string {
	switch chat.EffectiveMode() {
	case v1beta1.ModePlan:
		return []string{planMode}
	case v1beta1.ModeExplore:
		return []string{exploreMode}
	}
	return nil
}

// workspaceGuidance is about the workspace of the chat's tools, or about how to create one.
func workspaceGuidance(chat *v1beta1.Chat, registry *tools.Registry) []string {
	offered := registry.Suited(chat)
	canWorkThere := slices.ContainsFunc(offered, func(d tools.Definition) bool { return d.NeedsWorkspace })
	switch {
	case chat.Status.Internal.Attempt.HasWorkspace && canWorkThere && chat.Spec.ParentRef != nil:
		return []string{sharedWorkspace}
	case chat.Status.Internal.Attempt.HasWorkspace && canWorkThere:
		return []string{ownWorkspace + lifetime(chat.Spec.Workspace) + inWorkspace}
	case isOffered(offered, v1beta1.BuiltInCreateWorkspace):
		return []string{noWorkspace}
	}
	return nil
}

func isOffered(offered []tools.Definition, tool v1beta1.BuiltInTool) bool {
	return slices.ContainsFunc(offered, func(d tools.Definition) bool { return d.Name == string(tool) })
}

// lifetime is how long the workspace and its files last.
func lifetime(w *v1beta1.WorkspaceSource) string {
	switch {
	case w == nil:
		return keepsStorage
	case w.PodRef != nil:
		return "" // It is never stopped.
	case w.PodTemplateRef != nil && w.PodTemplateRef.Storage == nil,
		w.PodTemplateSelector != nil && w.PodTemplateSelector.Storage == nil:
		return keepsNothing
	}
	return keepsStorage
}
