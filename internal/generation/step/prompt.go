// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/tools"
)

// prompt builds the prompt from what the model is to see of the history. The outcome tells why there is none.
func (p *Performer) prompt(
	ctx context.Context, t *models.Target, view []v1alpha1.ChatMessage,
) ([]fantasy.Message, *Outcome) {
	spec, from, namespace := &p.chat.Spec, p.steps.options.Sources, p.steps.options.Namespace
	in := prompt.Input{
		SystemPrompt: spec.SystemPrompt, SubChat: spec.ParentRef != nil, Extra: p.guidance(), History: view,
		Dialect: provider.DialectOf(&t.Config.Spec), ResultBytes: tools.ResultLimit(limitOf(p.chat, t).Tokens),
	}
	if t := p.chat.Status.Turn; t != nil {
		in.CallsGivenUp = t.CallsGivenUp
	}
	var err error
	in.Instructions, err = from.Instructions(ctx, namespace, spec.InstructionsFrom)
	if err == nil {
		in.Files = from.Files(ctx, namespace, view)
	}
	switch {
	case Interrupted(ctx):
		return nil, &Outcome{Kind: v1alpha1.OutcomeInterrupted}
	case err != nil:
		return nil, new(Failed(instructionsError(p.chat, err)))
	}
	return prompt.Build(in), nil
}

func instructionsError(chat *v1alpha1.Chat, err error) *v1alpha1.GenerationError {
	e := &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorInternal, Message: fmt.Sprintf("The instructions of chat %s could not be read", chat.Name),
		Advice: "Send a message to try again",
	}
	if missing, ok := errors.AsType[*sources.MissingError](err); ok {
		e.Reason = v1alpha1.ErrorInstructionsNotFound
		e.Message = fmt.Sprintf("ConfigMap %s, key %q, which chat %s names in instructionsFrom, cannot be used: %s",
			missing.Ref.Name, missing.Ref.Key, chat.Name, missing.Why)
		e.Advice = "Create it, or mark the entry as optional, then send a message to continue"
	}
	return e
}
