// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/internal/tools"
)

// prompt builds the prompt from what the model is to see of the history. The outcome tells why there is none.
func (p *Performer) prompt(
	ctx context.Context, t *models.Target, view []v1alpha1.ChatMessage,
) ([]fantasy.Message, *Outcome) {
	spec, status := &p.chat.Spec, &p.chat.Status
	from, namespace := p.steps.options.Sources, p.steps.options.Namespace
	in := prompt.Input{
		SystemPrompt: spec.SystemPrompt, SubChat: spec.ParentRef != nil, History: view,
		Extra:   toolGuidance(p.chat, p.steps.options.Tools),
		Dialect: provider.DialectOf(&t.Config.Spec), ResultBytes: tools.ResultLimit(limitOf(p.chat, t).Tokens),
		GoOn: status.Internal.Attempt.AfterEmptyReply && status.Generation.Action == v1alpha1.ActionGenerateAssistant,
	}
	if t := status.Turn; t != nil {
		in.CallsGivenUp = t.CallsGivenUp
	}
	var err error
	in.Instructions, err = from.Instructions(ctx, namespace, spec.InstructionsFrom)
	if err == nil {
		in.Skills, err = p.skills(ctx)
	}
	if err == nil {
		in.Files = from.Files(ctx, namespace, view)
	}
	switch {
	case Interrupted(ctx):
		return nil, &Outcome{Kind: v1alpha1.OutcomeInterrupted}
	case err != nil:
		return nil, new(Failed(sourcesError(p.chat, err)))
	}
	return prompt.Build(in), nil
}

// skills is the index of the skills that the chat names, for a model that can read them: not for an advisor.
func (p *Performer) skills(ctx context.Context) (string, error) {
	reads := func(d tools.Definition) bool { return d.Name == string(v1alpha1.BuiltInReadSkill) }
	if len(p.chat.Spec.SkillsFrom) == 0 || p.chat.Status.Generation.Action == v1alpha1.ActionExecuteTools ||
		!slices.ContainsFunc(p.steps.options.Tools.Suited(p.chat), reads) {
		return "", nil
	}
	all, err := p.steps.options.Sources.Skills(ctx, p.steps.options.Namespace, p.chat.Spec.SkillsFrom)
	return skill.Index(skill.OfChat, all, false), err
}

// sourcesError is why what the chat names in ConfigMaps could not be read.
func sourcesError(chat *v1alpha1.Chat, err error) *v1alpha1.GenerationError {
	e := &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorInternal, Message: fmt.Sprintf("The instructions of chat %s could not be read", chat.Name),
		Advice: "Send a message to try again",
	}
	if missing, ok := errors.AsType[*sources.MissingError](err); ok {
		key := ""
		if missing.Key != "" {
			key = fmt.Sprintf(", key %q", missing.Key)
		}
		e.Reason = v1alpha1.ErrorConfigMapNotFound
		e.Message = fmt.Sprintf("ConfigMap %s%s, which chat %s names in %s, cannot be used: %s",
			missing.ConfigMap, key, chat.Name, missing.Field, missing.Why)
		e.Advice = "Create it, or mark the entry as optional, then send a message to continue"
	}
	return e
}
