// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"parley.dev/parley/api/v1alpha1"
)

// StripMessage leaves a message's text and other bulk out of the cache.
func StripMessage(o any) (any, error) {
	if message, ok := o.(*v1alpha1.ChatMessage); ok {
		message.ManagedFields = nil
		message.Annotations = nil
		message.Labels = nil
		message.Spec.Content = ""
		message.Spec.Parts = nil
	}
	return o, nil
}

// StripChat leaves a chat's prompts out of the cache, once the first message exists.
func StripChat(o any) (any, error) {
	if chat, ok := o.(*v1alpha1.Chat); ok {
		chat.ManagedFields = nil
		chat.Annotations = nil
		chat.Spec.SystemPrompt = ""
		if chat.Status.History.Version > 0 {
			chat.Spec.Prompt = ""
		}
	}
	return o, nil
}
