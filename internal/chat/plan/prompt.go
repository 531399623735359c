// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/content"
)

// PromptSuffix ends the names of the messages that prompts become.
const PromptSuffix = "-prompt"

// PromptName is the name of the message that spec.prompt stands for.
func PromptName(chat *v1alpha1.Chat) string { return chat.Name + PromptSuffix }

// PromptMessage is the User message that spec.prompt stands for.
func PromptMessage(chat *v1alpha1.Chat) *v1alpha1.ChatMessage {
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       chat.Namespace,
			Name:            PromptName(chat),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(chat, v1alpha1.GroupVersion.WithKind("Chat"))},
			Annotations:     promptAnnotations(chat),
		},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: chat.Name},
			Role:    v1alpha1.RoleUser,
			Content: chat.Spec.Prompt,
		},
	}
}

// IsPrompt reports whether the message is what this chat has made of its spec.prompt.
// Its author may have edited it since.
func IsPrompt(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	edited := m.Generation > 1
	return m.Spec.ChatRef.Name == chat.Name && !m.Spec.IsNote() && metav1.IsControlledBy(m, chat) &&
		(edited || content.Of(m) == content.Of(PromptMessage(chat)))
}

// promptAnnotations make the chat's prompt part of the trace that the chat names, and name the chat's author as that of
// the message, which only the manager may do for another user.
func promptAnnotations(chat *v1alpha1.Chat) map[string]string {
	annotations := map[string]string{}
	for _, name := range []string{v1alpha1.AnnotationTraceparent, v1alpha1.AnnotationCreatedBy} {
		if value := chat.Annotations[name]; value != "" {
			annotations[name] = value
		}
	}
	return annotations
}
