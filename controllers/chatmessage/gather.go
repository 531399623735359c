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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/kube/index"
)

// scope is everything that one reconcile has read.
type scope struct {
	message *v1beta1.ChatMessage
	// chat that the message names; nil if it does not exist.
	chat *v1beta1.Chat
	// followed is true when another message follows this generated one, which only a committed one can be.
	followed bool
	// commit of a message of a person or a client; nil if there is none that is known.
	commit *v1beta1.CommittedMessage
	// outcome is how the turn ended, or stands, that the message began; nil if that is not known. It was recorded by the
	// commit that made the version.
	outcome        *v1beta1.TurnOutcome
	outcomeVersion int64
	// archiving is true when the chat, or one above it, is to be archived, so that it takes no message up.
	archiving bool
}

func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName) (*scope, error) {
	var message v1beta1.ChatMessage
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
func (r *Reconciler) consider(ctx context.Context, message *v1beta1.ChatMessage) (*scope, error) {
	s := &scope{message: message}
	var chat v1beta1.Chat
	err := r.chatReader(message).Get(ctx,
		types.NamespacedName{Namespace: message.Namespace, Name: message.Spec.ChatRef.Name}, &chat)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", message.Spec.ChatRef.Name, err)
	}
	s.chat = &chat
	s.noteChat()
	if message.Spec.Generation != nil {
		return s, r.readFollowers(ctx, s)
	}
	if err := r.readCommit(ctx, s); err != nil {
		return nil, err
	}
	s.archiving, err = r.toBeArchived(ctx, &chat)
	return s, err
}

// isHeld reports whether the history of the chat is incomplete, so that no one can tell whether the message is part of
// it. What is left of an earlier chat of that name is not part of a fork, and keeps it from having its copies.
func (s *scope) isHeld() bool {
	if s.chat == nil || !s.chat.IsForking() {
		return s.chat != nil && s.chat.IsRestoring()
	}
	uid := history.ChatUID(s.message)
	return uid == "" || uid == string(s.chat.UID)
}

// toBeArchived reports whether the chat, or one above it, is to be archived.
func (r *Reconciler) toBeArchived(ctx context.Context, chat *v1beta1.Chat) (bool, error) {
	for range v1beta1.MaxFamilyDepth + 1 {
		if chat.Spec.Archived || chat.Spec.ParentRef == nil {
			return chat.Spec.Archived, nil
		}
		key := types.NamespacedName{Namespace: chat.Namespace, Name: chat.Spec.ParentRef.Name}
		chat = &v1beta1.Chat{}
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
// its author has seen. The cache may not show yet that the chat of a restored message is being restored.
func (r *Reconciler) chatReader(m *v1beta1.ChatMessage) client.Reader {
	if isNewNote(m) || m.Status.State == "" && m.Annotations[v1beta1.AnnotationRestoredFrom] != "" {
		return r.Live
	}
	return r.Client
}

// isNewNote reports whether the message is a note that has no place yet.
func isNewNote(m *v1beta1.ChatMessage) bool {
	return m.Spec.IsNote() && m.Status.State != v1beta1.MessageNoted
}

func (r *Reconciler) readFollowers(ctx context.Context, s *scope) error {
	if s.followed = endsWith(s.chat, s.message.Name); s.followed {
		return nil
	}
	followers, err := r.followersOf(ctx, s, client.Limit(1))
	s.followed = len(followers) > 0
	return err
}

// readCommit reads from the API server what generated messages record of the message, where the chat no longer does:
// the one behind it, which the cache names, and of how its turn ended any other.
func (r *Reconciler) readCommit(ctx context.Context, s *scope) error {
	if settled(s) || s.isDescribed() {
		return nil
	}
	if err := r.readReplies(ctx, s); err != nil || s.commit == nil || s.isDescribed() {
		return err
	}
	var all v1beta1.ChatMessageList
	if err := r.Live.List(ctx, &all, client.InNamespace(s.chat.Namespace),
		client.MatchingFields{"spec.chatRef.name": s.chat.Name}); err != nil {
		return fmt.Errorf("listing the messages of chat %s: %w", s.chat.Name, err)
	}
	chain, missing := history.Whole(history.RefOf(s.chat), history.Nodes(s.chat, all.Items))
	for _, n := range chain {
		s.noteCommits(n.Follows)
	}
	if s.outcome == nil && missing == s.chat.Status.History.Length { // The reply that recorded it was deleted.
		s.outcome = &v1beta1.TurnOutcome{Message: s.message.Name, Result: v1beta1.TurnAnswered}
	}
	return nil
}

// readReplies reads the generated messages right behind the message.
func (r *Reconciler) readReplies(ctx context.Context, s *scope) error {
	followers, err := r.followersOf(ctx, s)
	if err != nil {
		return err
	}
	for i := range followers {
		f := &followers[i]
		if !history.Follows(s.chat, f, s.message) ||
			f.Spec.Generation.HistoryVersion >= s.chat.Status.History.Version {
			continue
		}
		var reply v1beta1.ChatMessage
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(f), &reply); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading message %s: %w", f.Name, err)
		}
		s.noteCommits(reply.Spec.Follows)
	}
	return nil
}

// isDescribed reports whether all is known that the status says of a committed message.
func (s *scope) isDescribed() bool {
	return s.message.Spec.IsNote() || s.commit != nil && (s.outcome != nil || s.message.Spec.Role == v1beta1.RoleTool)
}

// noteChat notes what the chat records of the message: of its newest turn, and of what no generated message follows
// yet.
func (s *scope) noteChat() {
	s.noteCommits(s.chat.Status.Internal.Tail)
	turn, recorded := s.chat.Status.Turn, history.RecordedBy(s.chat, s.message.Name)
	if turn == nil || turn.Message != s.message.Name || !history.Is(recorded, s.message) {
		return
	}
	s.commit, s.outcome = recorded, conditions.OutcomeOf(turn, &s.chat.Status.Internal.Turn, s.chat.Status.LastError)
}

// version of the history with which the turn began, or was taken up again, that the message began.
func (s *scope) version() int64 {
	version := s.message.Status.HistoryVersion
	if s.commit != nil {
		version = s.commit.HistoryVersion
	}
	if s.outcome != nil {
		version = max(version, s.outcome.ResumedVersion)
	}
	return version
}

// noteCommits notes the newest commit of the message, and the end of its turn, as the message of the next turn records
// it.
func (s *scope) noteCommits(recorded []v1beta1.CommittedMessage) {
	for i := range recorded {
		commit := &recorded[i]
		if history.Is(commit, s.message) &&
			(s.commit == nil || s.commit.HistoryVersion < commit.HistoryVersion) {
			s.commit = commit
		}
		if ended := commit.PreviousTurn; ended != nil && ended.Message == s.message.Name &&
			s.outcomeVersion < commit.HistoryVersion {
			s.outcome, s.outcomeVersion = ended, commit.HistoryVersion
		}
	}
}

func (r *Reconciler) followersOf(ctx context.Context, s *scope, options ...client.ListOption,
) ([]v1beta1.ChatMessage, error) {
	var followers v1beta1.ChatMessageList
	err := r.Client.List(ctx, &followers, append(options, client.InNamespace(s.chat.Namespace),
		client.MatchingFields{index.MessagesByParent: s.message.Name}, client.UnsafeDisableDeepCopy)...)
	if err != nil {
		return nil, fmt.Errorf("listing what follows message %s: %w", s.message.Name, err)
	}
	return followers.Items, nil
}

// endsWith reports whether the message is at the end of the history, or right before a message that the chat's status
// records.
func endsWith(chat *v1beta1.Chat, name string) bool {
	return chat.Status.History.Head == name ||
		slices.ContainsFunc(chat.Status.Internal.Tail, func(c v1beta1.CommittedMessage) bool { return c.Parent == name })
}
