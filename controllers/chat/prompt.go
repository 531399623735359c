// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/index"
)

// promptSuffix ends the names of the messages that prompts become.
const promptSuffix = "-prompt"

func promptName(chat *v1alpha1.Chat) string { return chat.Name + promptSuffix }

// promptMessage is the User message that spec.prompt stands for.
func promptMessage(chat *v1alpha1.Chat) *v1alpha1.ChatMessage {
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       chat.Namespace,
			Name:            promptName(chat),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(chat, v1alpha1.GroupVersion.WithKind("Chat"))},
			Annotations:     tracedLike(chat),
		},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: chat.Name},
			Role:    v1alpha1.RoleUser,
			Content: chat.Spec.Prompt,
		},
	}
}

// withPrompt adds the message that spec.prompt stands for, if the chat has not begun, and creates it if need be. Until there is one
// no other message is taken up, and the facts say why there is none.
func (r *Reconciler) withPrompt(ctx context.Context, s *seen, open []v1alpha1.ChatMessage) ([]v1alpha1.ChatMessage, error) {
	chat := s.facts.Chat
	if chat.Spec.Prompt == "" || chat.Status.History.Version > 0 {
		return open, nil
	}
	name := promptName(chat)
	if i := slices.IndexFunc(open, func(m v1alpha1.ChatMessage) bool { return m.Name == name }); i >= 0 {
		if !isPrompt(chat, &open[i]) {
			s.facts.NoPrompt = &plan.NoPrompt{Message: name}
			return nil, nil
		}
		return open, nil
	}
	prompt := promptMessage(chat)
	err := r.Client.Create(ctx, prompt)
	if apierrors.IsAlreadyExists(err) {
		return r.withExisting(ctx, s, open)
	}
	if words := refusalOf(err, name); words != "" {
		s.facts.NoPrompt = &plan.NoPrompt{Message: name, Refused: words}
		s.lookAgain = sooner(s.lookAgain, refusalLasts)
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
	there, err := r.message(ctx, r.Live, chat.Namespace, promptName(chat))
	switch {
	case err != nil || there == nil:
		return nil, err
	case !isPrompt(chat, there):
		s.facts.NoPrompt = &plan.NoPrompt{Message: there.Name}
		return nil, nil
	case !isOpen(chat, there):
		return nil, nil
	}
	return append(open, *there), nil
}

// isPrompt reports whether the message is what this chat has made of its spec.prompt. Its author may have edited it since.
func isPrompt(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	edited := m.Generation > 1
	return m.Spec.ChatRef.Name == chat.Name && metav1.IsControlledBy(m, chat) &&
		(edited || index.ContentHash(m) == index.ContentHash(promptMessage(chat)))
}
