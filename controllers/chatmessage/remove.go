// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/telemetry"
)

// remove deletes the message if the API server confirms what the cache said.
func (r *Reconciler) remove(ctx context.Context, s *scope, v verdict) error {
	confirmed, err := r.confirm(ctx, s, v)
	if err != nil || !confirmed {
		return err
	}
	m := s.message
	log.FromContext(ctx).V(1).Info("removing a message that belongs to no history", "message",
		client.ObjectKeyFromObject(m))
	uid := m.UID
	if err := r.Client.Delete(ctx, m, client.Preconditions{UID: &uid}); err != nil && !apierrors.IsNotFound(err) &&
		!apierrors.IsConflict(err) {
		return fmt.Errorf("removing message %s/%s: %w", m.Namespace, m.Name, err)
	} else if err == nil && v == removeLeftover {
		r.Metrics.ResultRefused(telemetry.FenceMovedOn)
	}
	return nil
}

func (r *Reconciler) confirm(ctx context.Context, s *scope, v verdict) (bool, error) {
	m := s.message
	key := types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ChatRef.Name}
	if v == removeOrphan {
		return r.gone.isGone(ctx, r.Live, key, history.ChatUID(m))
	}
	var chat v1beta1.Chat
	if err := r.Live.Get(ctx, key, &chat); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading chat %s: %w", key, err)
	}
	if moved := past(&chat, m.Spec.Generation); !moved || v == removeUseless {
		return moved, nil
	}
	if chat.Status.Internal.Superseded != nil { // The chat reads what it follows before it removes it itself.
		return false, nil
	}
	inHistory, err := r.inHistory(ctx, &chat, m)
	return !inHistory, err
}

// inHistory walks the chat's history from its head, down to the place that the message claims. Where a message of the
// history is missing it is not known what came before it, so that stays until the chat has cut its history there.
func (r *Reconciler) inHistory(ctx context.Context, chat *v1beta1.Chat, m *v1beta1.ChatMessage) (bool, error) {
	var list v1beta1.ChatMessageList
	if err := r.Live.List(ctx, &list, client.InNamespace(chat.Namespace),
		client.MatchingFields{"spec.chatRef.name": chat.Name}); err != nil {
		return false, fmt.Errorf("listing the messages of chat %s: %w", chat.Name, err)
	}
	chain, missing := history.Whole(history.RefOf(chat), history.Nodes(chat, list.Items))
	return missing < chat.Status.History.Length ||
		slices.ContainsFunc(chain, func(n history.Node) bool { return n.Name == m.Name }), nil
}
