// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/denial"
)

// createPrompt creates the message that spec.prompt stands for. Until there is one no other message is taken up, and
// the facts say why there is none.
func (a *actuator) createPrompt(ctx context.Context, s *scope) error {
	chat, open := s.facts.Chat, s.facts.Open
	s.facts.PromptMissing, s.facts.Open = false, nil
	prompt := plan.PromptMessage(chat)
	err := a.client.Create(ctx, prompt)
	if apierrors.IsAlreadyExists(err) {
		if prompt, err = a.existingPrompt(ctx, s); err != nil || prompt == nil {
			return err
		}
	}
	if words := denial.Of(err, prompt.Name); words != "" {
		s.facts.NoPrompt = &plan.NoPrompt{Message: prompt.Name, Refused: words}
		s.lookAgain = plan.Sooner(s.lookAgain, denial.Lasts)
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating message %s for spec.prompt: %w", prompt.Name, err)
	}
	s.facts.Open = slices.Insert(open, 0, plan.MessageOf(prompt))
	return nil
}

// existingPrompt is the message that has the prompt's name, if it is the prompt and the cache does not show it yet.
// Otherwise the removal of that message enqueues the chat.
func (a *actuator) existingPrompt(ctx context.Context, s *scope) (*v1alpha1.ChatMessage, error) {
	chat := s.facts.Chat
	there, err := readAny(ctx, a.live, chat.Namespace, plan.PromptName(chat))
	switch {
	case err != nil || there == nil:
		return nil, err
	case !plan.IsPrompt(chat, there):
		s.facts.NoPrompt = &plan.NoPrompt{Message: there.Name}
		return nil, nil
	case !plan.IsOpen(chat, there):
		return nil, nil
	}
	return there, nil
}
