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
)

// withPrompt adds the message that spec.prompt stands for, if the chat has not begun, and creates it if need be. Until there is one
// no other message is taken up, and the facts say why there is none.
func (r *Reconciler) withPrompt(ctx context.Context, s *seen, open []v1alpha1.ChatMessage) ([]v1alpha1.ChatMessage, error) {
	chat := s.facts.Chat
	if chat.Spec.Prompt == "" || chat.Status.History.Version > 0 {
		return open, nil
	}
	name := plan.PromptName(chat)
	if i := slices.IndexFunc(open, func(m v1alpha1.ChatMessage) bool { return m.Name == name }); i >= 0 {
		if !plan.IsPrompt(chat, &open[i]) {
			s.facts.NoPrompt = &plan.NoPrompt{Message: name}
			return nil, nil
		}
		return open, nil
	}
	prompt := plan.PromptMessage(chat)
	err := r.Client.Create(ctx, prompt)
	if apierrors.IsAlreadyExists(err) {
		return r.withExisting(ctx, s, open)
	}
	if words := refusalOf(err, name); words != "" {
		s.facts.NoPrompt = &plan.NoPrompt{Message: name, Refused: words}
		s.lookAgain = plan.Sooner(s.lookAgain, refusalLasts)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating message %s for spec.prompt: %w", name, err)
	}
	return append(open, *prompt), nil
}

// withExisting adds the message that has the prompt's name, if it is the prompt and the cache does not show it yet. Otherwise the
// removal of that message wakes the chat.
func (r *Reconciler) withExisting(ctx context.Context, s *seen, open []v1alpha1.ChatMessage) ([]v1alpha1.ChatMessage, error) {
	chat := s.facts.Chat
	there, err := r.message(ctx, r.Live, chat.Namespace, plan.PromptName(chat))
	switch {
	case err != nil || there == nil:
		return nil, err
	case !plan.IsPrompt(chat, there):
		s.facts.NoPrompt = &plan.NoPrompt{Message: there.Name}
		return nil, nil
	case !plan.IsOpen(chat, there):
		return nil, nil
	}
	return append(open, *there), nil
}
