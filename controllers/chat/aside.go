// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/status"
	"parley.dev/parley/internal/turn"
)

// putAside deals with the messages that left the history: generated ones are removed, people's own are kept and say that
// they were superseded. The chat has been committed without them before, so that a crash can lose nothing.
func (r *Reconciler) putAside(ctx context.Context, s *seen, plan *turn.Plan) error {
	if !plan.PutAside {
		return nil
	}
	chat := s.facts.Chat
	var messages v1alpha1.ChatMessageList
	if err := r.Live.List(ctx, &messages, client.InNamespace(chat.Namespace), client.MatchingFields{"spec.chatRef.name": chat.Name}); err != nil {
		return fmt.Errorf("listing the messages of chat %s: %w", chat.Name, err)
	}
	for i := range messages.Items {
		m := &messages.Items[i]
		var err error
		switch {
		case !leftHistory(chat, m):
		case m.Spec.Generation == nil:
			err = r.markSuperseded(ctx, s, m)
		default:
			err = r.Client.Delete(ctx, m, client.Preconditions{UID: &m.UID})
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("putting message %s aside: %w", m.Name, err)
		}
	}
	return nil
}

// leftHistory tells whether the message was part of the history that was cut off.
func leftHistory(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) bool {
	r := chat.Status.History.Superseded
	index, version, uid := m.Status.Index, m.Status.HistoryVersion, m.Status.ChatUID
	if g := m.Spec.Generation; g != nil {
		index, version, uid = m.Spec.Index, g.HistoryVersion+1, g.ChatUID
	} else if m.Status.State != v1alpha1.MessageCommitted || placedByChat(chat, m.Name) {
		return false
	}
	return uid == string(chat.UID) && index != nil && *index >= r.FromIndex && version < r.BeforeVersion
}

// placedByChat tells whether the chat's own status says where the message stands.
func placedByChat(chat *v1alpha1.Chat, name string) bool {
	t := chat.Status.Turn
	return t != nil && (t.Message == name || t.Results != nil && t.Results.Message == name)
}

func (r *Reconciler) supersedeAll(ctx context.Context, s *seen, plan *turn.Plan) error {
	for _, name := range plan.Superseded {
		if err := r.supersede(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// supersede marks a message that is dropped from the queue.
func (r *Reconciler) supersede(ctx context.Context, s *seen, name string) error {
	message, err := r.message(ctx, r.Live, s.facts.Chat.Namespace, name)
	if err != nil || message == nil {
		return err
	}
	return r.markSuperseded(ctx, s, message)
}

func (r *Reconciler) markSuperseded(ctx context.Context, s *seen, m *v1alpha1.ChatMessage) error {
	m.Status.ChatUID = string(s.facts.Chat.UID)
	status.Supersede(m, s.facts.Now)
	if err := r.Client.Status().Update(ctx, m); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("marking message %s as superseded: %w", m.Name, err)
	}
	return nil
}
