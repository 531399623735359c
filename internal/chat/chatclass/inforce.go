// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatclass

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1beta1"
)

// Effective is the chat with the settings that are in force, and the fields of its own that do not count. A chat
// without class (nil) is returned as it is.
func Effective(chat *v1beta1.Chat, class *v1beta1.ChatClass) (*v1beta1.Chat, []string) {
	if class == nil {
		return chat, nil
	}
	var ignored []string
	with := *chat
	with.Spec.ChatSettings, ignored = Apply(&chat.Spec.ChatSettings, &class.Spec)
	return &with, ignored
}

// Of is the chat with the settings that are in force by the classes of its namespace. One whose class does not exist
// has what it says itself.
func Of(chat *v1beta1.Chat, classes []v1beta1.ChatClass) *v1beta1.Chat {
	class, _ := Resolve(classes, &chat.Spec)
	with, _ := Effective(chat, class)
	return with
}

// ModelRefused is why a ChatModelConfig may not answer chats of the class; nil if it may. of is the ChatMessage that
// names it; empty: the chat does, or it is the namespace's default.
func ModelRefused(class *v1beta1.ChatClass, config, of string) *v1beta1.GenerationError {
	if class == nil || class.Spec.Restrictions == nil {
		return nil
	}
	kept := class.Spec.Restrictions
	switch {
	case of != "" && slices.Contains(kept.Fields, v1beta1.FieldModelConfigRef):
		return &v1beta1.GenerationError{
			Reason: v1beta1.ErrorModelConfigNotAllowed,
			Message: fmt.Sprintf("ChatMessage %s names ChatModelConfig %s, but ChatClass %s does not let messages name one", of,
				config, class.Name),
			Advice: "Take spec.modelConfigRef out of the message, or let the chat have another class",
		}
	case !answers(kept.ModelConfigs, config):
		return &v1beta1.GenerationError{
			Reason: v1beta1.ErrorModelConfigNotAllowed,
			Message: fmt.Sprintf("ChatClass %s does not let ChatModelConfig %s answer: it allows %s", class.Name, config,
				list(kept.ModelConfigs)),
			Advice: "Name one of those in spec.modelConfigRef, or let the chat have another class",
		}
	}
	return nil
}

// refused reports whether chats may not name the ChatModelConfig.
func refused(kept *v1beta1.ChatRestrictions, ref *v1beta1.ModelConfigReference) bool {
	return ref != nil && !answers(kept.ModelConfigs, ref.Name)
}

// answers reports whether the ChatModelConfig is among those that may answer; an empty list allows all.
func answers(allowed []v1beta1.ModelConfigReference, config string) bool {
	return len(allowed) == 0 ||
		slices.ContainsFunc(allowed, func(ref v1beta1.ModelConfigReference) bool { return ref.Name == config })
}

// maxListed is how many ChatModelConfigs an error lists.
const maxListed = 5

func list(refs []v1beta1.ModelConfigReference) string {
	text := ""
	for i, ref := range refs {
		switch {
		case i == maxListed:
			return fmt.Sprintf("%s and %d more", text, len(refs)-maxListed)
		case i > 0:
			text += ", "
		}
		text += ref.Name
	}
	return text
}
