// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compaction says what of a history the model sees, what a summary stands for,
// and how one is asked for. It is pure.
//
// The invariant that it keeps: a message that nobody has answered yet is never summarised.
// It reaches the model word for word.
package compaction

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// prefix stands before a summary where the model reads it.
const prefix = "The conversation before this point was replaced by the following summary of it. " +
	"Go on from there; do not mention the summary.\n\n"

// View is what the model sees of the messages of a context: the summary that it begins with, if there is one, as a User
// message, then the messages in their order.
func View(visible []v1alpha1.ChatMessage) []v1alpha1.ChatMessage {
	last := lastSummary(visible)
	if last < 0 {
		return visible
	}
	view := make([]v1alpha1.ChatMessage, 0, len(visible))
	view = append(view, asUser(&visible[last]))
	for i := range visible {
		if visible[i].Spec.Role != v1alpha1.RoleSystem {
			view = append(view, visible[i])
		}
	}
	return view
}

func lastSummary(messages []v1alpha1.ChatMessage) int {
	for i := range slices.Backward(messages) {
		if messages[i].Spec.Role == v1alpha1.RoleSystem {
			return i
		}
	}
	return -1
}

func asUser(summary *v1alpha1.ChatMessage) v1alpha1.ChatMessage {
	user := v1alpha1.ChatMessage{ObjectMeta: summary.ObjectMeta}
	user.Spec = v1alpha1.ChatMessageSpec{ChatRef: summary.Spec.ChatRef, Role: v1alpha1.RoleUser,
		Content: prefix + summary.Spec.Text()}
	return user
}

// Replies is the number of Assistant messages in the context, and whether the context begins with a summary.
func Replies(visible []v1alpha1.ChatMessage) (replies int64, compacted bool) {
	for i := range visible {
		switch visible[i].Spec.Role {
		case v1alpha1.RoleAssistant:
			replies++
		case v1alpha1.RoleSystem: // Before it there are only messages that were unanswered then.
			replies, compacted = 0, true
		}
	}
	return replies, compacted
}

// Unanswered is how many messages at the end of a history nobody has answered yet.
func Unanswered(messages []v1alpha1.ChatMessage) (n int) {
	for i := range slices.Backward(messages) {
		if messages[i].Spec.LastRole() != v1alpha1.RoleUser {
			break
		}
		n++
	}
	return n
}
