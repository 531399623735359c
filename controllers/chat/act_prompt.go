// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/denial"
)

// createPrompt creates the message that spec.prompt stands for. Until there is one no other message is taken up, and
// the facts say why there is none.
func (a *actuator) createPrompt(ctx context.Context, s *scope) error {
	chat, open := s.facts.Chat, s.facts.Open
	s.facts.PromptMissing, s.facts.Open = false, nil
	if yet, err := a.yetToBegin(ctx, chat); err != nil || !yet {
		return err
	}
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

// yetToBegin reports whether the chat has no history, whatever the cache shows of it. Of one that has begun, somebody
// may have deleted the prompt: made again from an old view, it would be answered.
func (a *actuator) yetToBegin(ctx context.Context, chat *v1beta1.Chat) (bool, error) {
	var now v1beta1.Chat
	err := a.live.Get(ctx, client.ObjectKeyFromObject(chat), &now)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading chat %s: %w", chat.Name, err)
	}
	return now.UID == chat.UID && now.Status.History.Version == 0, nil
}

// existingPrompt is the message that has the prompt's name, if it is the prompt and the cache does not show it yet.
// Otherwise the removal of that message enqueues the chat.
func (a *actuator) existingPrompt(ctx context.Context, s *scope) (*v1beta1.ChatMessage, error) {
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
	case there.Generation > 1: // A class may have come with the edit. The cache shows both before long.
		return nil, nil
	}
	return there, nil
}
