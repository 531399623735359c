// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/kube/index"
)

// messagesAtOnce is how many messages are read from the API server at a time: 16, of 1 MiB each at most.
const messagesAtOnce = 16

// readRest finds out since when the chats below have had nothing to do, if the chat is to be deleted some time after
// that, and whether its class keeps enough others.
func (r *familyReader) readRest(ctx context.Context, s *scope) error {
	chat, f := s.facts.Chat, &s.facts
	class := f.Class.Of()
	if class != nil {
		f.Surplus = r.idle.isSurplus(class, chat.Name)
	}
	if !f.HasSubChats || chat.Spec.ParentRef != nil || !f.Surplus && !chat.Spec.Retention.Deletes() {
		return nil
	}
	below, err := descendants(ctx, r.cache, chat)
	if err != nil {
		return err
	}
	for i := range below {
		below[i] = r.written.newest(below[i])
	}
	f.IdleBelow, f.AtWorkBelow = tree.Rest(below)
	return nil
}

// stillRests asks the API server whether chat and family rest as the decision has it: a message that was just sent must
// not go with them, and what a class says now counts. That the chat itself is unchanged is the deletion's own
// precondition.
func (g *gatherer) stillRests(ctx context.Context, s *scope) (bool, error) {
	chat := s.facts.Chat
	if same, err := g.classes.unchanged(ctx, s); err != nil || !same {
		return false, err
	}
	below, err := descendants(ctx, g.live, chat)
	if err != nil {
		return false, err
	}
	if _, atWork := tree.Rest(below); atWork {
		return false, nil
	}
	for _, member := range append(below, chat) {
		if open, err := g.hasOpen(ctx, member); err != nil || open {
			return false, err
		}
	}
	return true, nil
}

// unchanged reports whether the API server has the class of the chat as the decision has it.
func (l *classLister) unchanged(ctx context.Context, s *scope) (bool, error) {
	classes, err := l.list(ctx, l.live, s.facts.Chat.Namespace)
	if err != nil {
		return false, err
	}
	now, missing := chatclass.Resolve(classes.Items, &s.facts.Chat.Spec)
	was := s.facts.Class.Of()
	if missing != nil || now == nil || was == nil {
		return missing == nil && now == was, nil
	}
	return now.UID == was.UID && now.Generation == was.Generation, nil
}

// answersNothing reports whether nothing answers what people say in the chat: it is archived, the limits of its family
// keep it from beginning, or it has no history yet.
func answersNothing(chat *v1beta1.Chat) bool {
	return chat.Status.Archived || tree.BeyondLimits(chat) || chat.IsForking()
}

// hasOpen reports whether people have said something in the chat that it has not dealt with, also by an edit, and that
// it may answer.
func (g *gatherer) hasOpen(ctx context.Context, chat *v1beta1.Chat) (bool, error) {
	if answersNothing(chat) {
		return false, nil
	}
	for next, more := "", true; more; more = next != "" {
		var page v1beta1.ChatMessageList
		if err := g.live.List(ctx, &page, client.InNamespace(chat.Namespace), client.Limit(messagesAtOnce),
			client.MatchingFields{index.MessagesByChat: chat.Name}, client.Continue(next)); err != nil {
			return false, fmt.Errorf("listing the messages of chat %s: %w", chat.Name, err)
		}
		edits := plan.Facts{Chat: chat}
		for i := range page.Items {
			m := &page.Items[i]
			if commit := plan.CommitOf(chat, m); commit != nil {
				edits.NoteEdit(m, commit)
			}
			if edits.Edited != nil || m.Spec.Role == v1beta1.RoleUser && plan.IsOpen(chat, m) {
				return true, nil
			}
		}
		next = page.Continue
	}
	return false, nil
}

// descendants are the chats below the chat, at all depths, but for those that are being deleted.
func descendants(ctx context.Context, reader client.Reader, chat *v1beta1.Chat) ([]*v1beta1.Chat, error) {
	var all []*v1beta1.Chat
	parents := []string{chat.Name}
	for range v1beta1.MaxFamilyDepth {
		var next []string
		for _, parent := range parents {
			var children v1beta1.ChatList
			if err := reader.List(ctx, &children, client.InNamespace(chat.Namespace),
				client.MatchingFields{index.ChatsByParent: parent}, client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("listing the sub-chats of chat %s: %w", parent, err)
			}
			for i := range children.Items {
				if child := &children.Items[i]; child.DeletionTimestamp.IsZero() {
					all, next = append(all, child), append(next, child.Name)
				}
			}
		}
		parents = next
	}
	return all, nil
}
