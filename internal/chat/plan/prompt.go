// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/content"
)

// PromptSuffix ends the names of the messages that prompts become.
const PromptSuffix = "-prompt"

// PromptName is the name of the message that spec.prompt stands for.
func PromptName(chat *v1beta1.Chat) string { return chat.Name + PromptSuffix }

// PromptMessage is the User message that spec.prompt stands for.
func PromptMessage(chat *v1beta1.Chat) *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       chat.Namespace,
			Name:            PromptName(chat),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(chat, v1beta1.GroupVersion.WithKind("Chat"))},
			Annotations:     promptAnnotations(chat),
		},
		Spec: v1beta1.ChatMessageSpec{
			ChatRef: v1beta1.ChatReference{Name: chat.Name},
			Role:    v1beta1.RoleUser,
			Content: chat.Spec.Prompt,
		},
	}
}

// IsPrompt reports whether the message is what this chat has made of its spec.prompt. Its author may have edited it
// since: of a restored message that is not known.
func IsPrompt(chat *v1beta1.Chat, m *v1beta1.ChatMessage) bool {
	edited := m.Generation > 1 || m.Annotations[v1beta1.AnnotationRestoredFrom] != ""
	return m.Spec.ChatRef.Name == chat.Name && !m.Spec.IsNote() && metav1.IsControlledBy(m, chat) &&
		(edited || content.Of(m) == content.Of(PromptMessage(chat)))
}

// promptAnnotations make the chat's prompt part of the trace that the chat names, and name the chat's author as that of
// the message, which only the manager may do for another user.
func promptAnnotations(chat *v1beta1.Chat) map[string]string {
	annotations := map[string]string{}
	for _, name := range []string{v1beta1.AnnotationTraceparent, v1beta1.AnnotationCreatedBy} {
		if value := chat.Annotations[name]; value != "" {
			annotations[name] = value
		}
	}
	return annotations
}
