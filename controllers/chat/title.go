// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"

	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/content"
	"parley.dev/parley/internal/firstwords"
)

// readBeginning reads how the message begins that a chat without a title is about to begin with: the cache has no texts. A chat's own
// prompt is there until it has become a message.
func (r *Reconciler) readBeginning(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	if len(s.facts.Open) == 0 || !plan.LacksTitle(chat) {
		return nil
	}
	first := &s.facts.Open[0]
	prompt := plan.PromptMessage(chat)
	switch {
	case first.FirstWords != "":
	case first.Name == prompt.Name && first.ContentHash == content.Hash(&prompt.Spec):
		first.FirstWords = firstwords.Of(&prompt.Spec)
	default:
		message, err := r.message(ctx, r.Live, chat.Namespace, first.Name)
		if err != nil || message == nil || content.Of(message) != first.ContentHash {
			return err
		}
		first.FirstWords = firstwords.Of(&message.Spec)
	}
	return nil
}
