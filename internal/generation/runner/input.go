// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/tools"
)

// prompt builds the prompt from what the model is to see of the history. The outcome tells why there is none.
func (a *attempt) prompt(ctx context.Context, t *target, view []v1alpha1.ChatMessage) ([]fantasy.Message, *outcome) {
	spec := &a.chat.Spec
	in := prompt.Input{
		SystemPrompt: spec.SystemPrompt, SubChat: spec.ParentRef != nil, Extra: a.guidance(), History: view, Dialect: provider.DialectOf(&t.config.Spec),
		ResultBytes: tools.ResultLimit(a.limitOf(t).Tokens),
	}
	if t := a.chat.Status.Turn; t != nil {
		in.CallsGivenUp = t.CallsGivenUp
	}
	var err error
	in.Instructions, err = a.sources.Instructions(ctx, a.Namespace, spec.InstructionsFrom)
	if err == nil {
		in.Files = a.sources.Files(ctx, a.Namespace, view)
	}
	switch {
	case a.interrupted():
		return nil, &outcome{kind: v1alpha1.OutcomeInterrupted}
	case err != nil:
		return nil, new(failed(instructionsError(a.chat, err)))
	}
	return prompt.Build(in), nil
}

func instructionsError(chat *v1alpha1.Chat, err error) *v1alpha1.GenerationError {
	e := &v1alpha1.GenerationError{Reason: v1alpha1.ErrorInternal, Message: fmt.Sprintf("The instructions of chat %s could not be read", chat.Name), Advice: "Send a message to try again"}
	if missing, ok := errors.AsType[*sources.MissingError](err); ok {
		e.Reason = v1alpha1.ErrorInstructionsNotFound
		e.Message = fmt.Sprintf("ConfigMap %s, key %q, which chat %s names in instructionsFrom, cannot be used: %s",
			missing.Ref.Name, missing.Ref.Key, chat.Name, missing.Why)
		e.Advice = "Create it, or mark the entry as optional, then send a message to go on"
	}
	return e
}
