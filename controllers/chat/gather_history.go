// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/index"
)

// readChain finds out whether a committed message was deleted, if there is reason to look.
func (g *gatherer) readChain(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	if chat.Status.History.Length == 0 || g.memory.chains.isWhole(chat) {
		return nil
	}
	// Before the messages are read: a deletion that comes later makes the chat suspect again.
	g.memory.chains.foundWhole(chat)
	whole, err := walkHistory(ctx, chat, g.cache, g.live)
	if err == nil && whole.Missing == chat.Status.History.Length {
		return nil
	}
	g.memory.chains.forget(keyOf(chat)) // Until the history has been read, or cut.
	if err == nil {
		s.facts.Truncated = whole.Rest()
	}
	return err
}

// walkHistory finds the part of the history before the first message that is missing. What one reader does not show is
// asked of the next before it counts as missing.
func walkHistory(ctx context.Context, chat *v1beta1.Chat, readers ...client.Reader) (whole plan.Whole, err error) {
	for _, reader := range readers {
		var list v1beta1.ChatMessageList
		if err := reader.List(ctx, &list, client.InNamespace(chat.Namespace),
			client.MatchingFields{index.MessagesByChat: chat.Name}); err != nil {
			return whole, fmt.Errorf("listing the messages of chat %s: %w", chat.Name, err)
		}
		if whole = plan.WholeOf(chat, list.Items); whole.Missing == chat.Status.History.Length {
			break
		}
	}
	return whole, nil
}

// wholeOf is the part of the history before the first missing message, as the API server has it; it is read once.
func (g *gatherer) wholeOf(ctx context.Context, s *scope) (*plan.Whole, error) {
	if s.whole == nil {
		whole, err := walkHistory(ctx, s.facts.Chat, g.live)
		if err != nil {
			return &plan.Whole{}, err
		}
		s.whole = &whole
	}
	return s.whole, nil
}
