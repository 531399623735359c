// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
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
