// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
)

// readCosts reads what the chats below have cost, if a budget of this one counts them.
func (r *familyReader) readCosts(ctx context.Context, s *scope, members *tree.Family) error {
	chat := s.facts.Chat
	if !tree.CountsSubChats(chat) {
		return nil
	}
	var failed error
	isBelow := func(entry v1beta1.SubChatCost) bool {
		is, err := r.isBelow(ctx, chat, entry)
		failed = errors.Join(failed, err)
		return is
	}
	s.facts.SubChatCosts = members.CostsBelow(chat, func(missing v1beta1.SubChatCost) ([]v1beta1.Cost, bool) {
		return r.costs.last(keyOf(chat), missing), !isBelow(missing)
	}, isBelow)
	if !tree.HasBudget(chat) && !lacksClass(s) {
		s.facts.SubChatCosts.Now, s.facts.SubChatCosts.AtRest = nil, nil
	}
	return failed
}

// lacksClass reports whether the chat names a class that does not exist. That class may have a budget.
func lacksClass(s *scope) bool { return s.facts.Class == nil && s.facts.Chat.Spec.ChatClassName != "" }

// isBelow asks the API server whether a chat is still below this one: the cache may be older than the record.
func (r *familyReader) isBelow(ctx context.Context, chat *v1beta1.Chat, entry v1beta1.SubChatCost) (bool, error) {
	found, err := tree.Descendant(entry.Name, chat.Name, func(name string) (*v1beta1.Chat, error) {
		var relative v1beta1.Chat
		return &relative, r.live.Get(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: name}, &relative)
	})
	if err != nil {
		return false, fmt.Errorf("finding out whether sub-chat %s of chat %s was deleted: %w", entry.Name, keyOf(chat), err)
	}
	return found != nil && string(found.UID) == entry.UID, nil
}
