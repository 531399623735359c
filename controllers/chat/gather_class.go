// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/plan"
)

// readClass finds the class of the chat. From here on the facts have the chat with the settings that are in force.
func (l *classLister) readClass(ctx context.Context, s *scope) error {
	classes, err := l.readClasses(ctx, s)
	if err != nil {
		return err
	}
	class, missing := chatclass.Resolve(classes, &s.facts.Chat.Spec)
	s.classes, s.facts.Blocked, s.facts.Namespace = classes, missing, chatclass.Namespace(classes)
	if class == nil {
		return nil
	}
	chat, ignored := chatclass.Effective(s.facts.Chat, class)
	s.facts.Class = &plan.Class{ChatClass: class, Said: s.facts.Chat, Ignored: ignored}
	s.facts.Chat = chat
	return nil
}

// readClasses reads the ChatClasses of the chat's namespace. The default class applies to every chat, so no first step
// begins before it is certain that there is none. A class that is named is waited for. In a turn the API server is
// asked, so that a late cache ends no turn.
func (l *classLister) readClasses(ctx context.Context, s *scope) ([]v1beta1.ChatClass, error) {
	cached, err := l.list(ctx, l.cache, s.facts.Chat.Namespace)
	if err != nil {
		return nil, err
	}
	switch chat := s.facts.Chat; {
	case chatclass.FirstDefault(cached.Items) == nil && s.beginsFirstStep():
		return l.listAsNewAs(ctx, s, cached.Items)
	case chat.Status.Phase.HasTurn() && chat.Spec.ChatClassName != "" &&
		chatclass.Find(cached.Items, chat.Spec.ChatClassName) == nil: // The turn waits, or fails if it is to be archived.
		if cached, err = l.list(ctx, l.live, chat.Namespace); err != nil {
			return nil, err
		}
	}
	return cached.Items, nil
}

// beginsFirstStep reports whether the chat's first step may begin or is under way. A message that was taken up is the
// first version of the history, the step that answers it the second. A prompt becomes a message within a pass. The
// history of a fork begins with versions of its source.
func (s *scope) beginsFirstStep() bool {
	chat := s.facts.Chat
	if chat.Spec.Fork != nil && chat.Status.Usage == (v1beta1.TokenUsage{}) {
		return true
	}
	if chat.Status.History.Version > 0 {
		return chat.Status.History.Version == 1
	}
	return chat.Spec.Prompt != "" || len(s.unsettled) > 0
}
