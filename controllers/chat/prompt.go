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
)

func promptName(chat *v1alpha1.Chat) string { return chat.Name + "-prompt" }

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

// withPrompt creates the message that spec.prompt stands for, if the chat has not begun.
func (r *Reconciler) withPrompt(ctx context.Context, chat *v1alpha1.Chat, open []v1alpha1.ChatMessage) ([]v1alpha1.ChatMessage, error) {
	if chat.Spec.Prompt == "" || chat.Status.History.Version > 0 {
		return open, nil
	}
	name := promptName(chat)
	if slices.ContainsFunc(open, func(m v1alpha1.ChatMessage) bool { return m.Name == name }) {
		return open, nil
	}
	prompt := promptMessage(chat)
	err := r.Client.Create(ctx, prompt)
	if apierrors.IsAlreadyExists(err) {
		// The cache does not show it yet; or a chat of the same name left it behind, and its removal wakes this chat again.
		there, err := r.message(ctx, r.Live, chat.Namespace, name)
		if err != nil || there == nil || there.Spec.ChatRef.Name != chat.Name || !isOpen(chat, there) {
			return nil, err
		}
		return append(open, *there), nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating message %s for spec.prompt: %w", name, err)
	}
	return append(open, *prompt), nil
}
