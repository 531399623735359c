// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/index"
)

// readOpen finds the messages of people that have yet to be taken up: User messages in the order to take them, the chat's
// prompt first, then in the order of their creation; clients' results; and the first message that was edited.
func (r *Reconciler) readOpen(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	var messages v1alpha1.ChatMessageList
	err := r.Client.List(ctx, &messages, client.InNamespace(chat.Namespace), client.MatchingFields{index.UnsettledByChat: chat.Name})
	if err != nil {
		return fmt.Errorf("listing open messages: %w", err)
	}
	var open []v1alpha1.ChatMessage
	for i := range messages.Items {
		switch m := &messages.Items[i]; {
		case m.Spec.Role == v1alpha1.RoleUser && plan.IsOpen(chat, m):
			open = append(open, *m)
		case m.Spec.Role == v1alpha1.RoleUser:
			s.facts.NoteEdit(m)
		case plan.IsOpen(chat, m):
			s.results = append(s.results, m.Name)
		}
	}
	if err := r.confirmEdit(ctx, s); err != nil {
		return err
	}
	if open, err = r.withPrompt(ctx, s, open); err != nil {
		return err
	}
	slices.SortFunc(open, func(a, b v1alpha1.ChatMessage) int { return plan.TakeOrder(chat, &a, &b) })
	return r.confirmOpen(ctx, s, open)
}

// confirmOpen notes the messages that are open beyond doubt.
func (r *Reconciler) confirmOpen(ctx context.Context, s *seen, open []v1alpha1.ChatMessage) error {
	for i := range open {
		if still, err := r.stillOpen(ctx, s.facts.Chat, &open[i]); err != nil {
			return err
		} else if still {
			s.facts.Open = append(s.facts.Open, plan.MessageOf(&open[i]))
		}
	}
	return r.readBeginning(ctx, s)
}

// confirmEdit looks at the message itself: the cache may show an older one of its name.
func (r *Reconciler) confirmEdit(ctx context.Context, s *seen) error {
	if s.facts.Edited == nil {
		return nil
	}
	live, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, s.facts.Edited.Name)
	s.facts.Edited = nil
	if live != nil {
		s.facts.NoteEdit(live)
	}
	return err
}

// stillOpen makes sure that no earlier turn took the message up, which the cache may not show yet. Before a turn's record
// is replaced, its message says that it was committed. So a message whose newest known write is later than the chat's
// last one says all there is to say: resourceVersions of custom resources count the writes of one store. Otherwise the
// API server is asked; the chat was read first, so that the answer is late enough.
func (r *Reconciler) stillOpen(ctx context.Context, chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) (bool, error) {
	if older(chat.ResourceVersion, m.ResourceVersion) {
		return true, nil
	}
	live, err := r.message(ctx, r.Live, m.Namespace, m.Name)
	if err != nil || live == nil {
		return false, err
	}
	return live.UID == m.UID && plan.IsOpen(chat, live), nil
}
