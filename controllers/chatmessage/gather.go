// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/index"
)

// scope is everything that one reconcile has read.
type scope struct {
	message *v1alpha1.ChatMessage
	// chat that the message names; nil if it does not exist.
	chat *v1alpha1.Chat
	// followed is true when another message names this one as its parent, which only a committed one can be.
	followed bool
	// archiving is true when the chat, or one above it, is to be archived, so that it takes no message up.
	archiving bool
}

func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*scope, error) {
	var message v1alpha1.ChatMessage
	if err := r.Client.Get(ctx, key, &message); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("reading message %s: %w", key, err)
	}
	if !message.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return r.consider(ctx, &message)
}

// consider reads what is to know besides the message.
func (r *Reconciler) consider(ctx context.Context, message *v1alpha1.ChatMessage) (*scope, error) {
	s := &scope{message: message}
	var chat v1alpha1.Chat
	err := r.chatReader(message).Get(ctx,
		types.NamespacedName{Namespace: message.Namespace, Name: message.Spec.ChatRef.Name}, &chat)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", message.Spec.ChatRef.Name, err)
	}
	s.chat = &chat
	if message.Spec.Generation != nil {
		return s, r.readFollowers(ctx, s)
	}
	s.archiving, err = r.toBeArchived(ctx, &chat)
	return s, err
}

// toBeArchived reports whether the chat, or one above it, is to be archived.
func (r *Reconciler) toBeArchived(ctx context.Context, chat *v1alpha1.Chat) (bool, error) {
	for range v1alpha1.MaxFamilyDepth + 1 {
		if chat.Spec.Archived || chat.Spec.ParentRef == nil {
			return chat.Spec.Archived, nil
		}
		key := types.NamespacedName{Namespace: chat.Namespace, Name: chat.Spec.ParentRef.Name}
		chat = &v1alpha1.Chat{}
		if err := r.Client.Get(ctx, key, chat); err != nil {
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return false, fmt.Errorf("reading chat %s, above another one: %w", key, err)
		}
	}
	return false, nil
}

// chatReader is where to read the chat of a message. A note gets its place by the chat as it is now: behind all that
// its author has seen.
func (r *Reconciler) chatReader(m *v1alpha1.ChatMessage) client.Reader {
	if isNewNote(m) {
		return r.Live
	}
	return r.Client
}

// isNewNote reports whether the message is a note that has no place yet.
func isNewNote(m *v1alpha1.ChatMessage) bool {
	return m.Spec.IsNote() && m.Status.State != v1alpha1.MessageNoted
}

func (r *Reconciler) readFollowers(ctx context.Context, s *scope) error {
	if s.followed = endsWith(s.chat, s.message.Name); s.followed {
		return nil
	}
	var followers v1alpha1.ChatMessageList
	err := r.Client.List(ctx, &followers, client.InNamespace(s.chat.Namespace),
		client.MatchingFields{index.MessagesByParent: s.message.Name}, client.Limit(1))
	if err != nil {
		return fmt.Errorf("listing what follows message %s: %w", s.message.Name, err)
	}
	s.followed = len(followers.Items) > 0
	return nil
}

// endsWith reports whether the chat itself says that the message of that name is part of its history.
func endsWith(chat *v1alpha1.Chat, name string) bool {
	turn, previous := chat.Status.Turn, chat.Status.Internal.PreviousTurn
	return chat.Status.History.Head == name || turn != nil && turn.Parent == name ||
		previous != nil && previous.Parent == name
}
