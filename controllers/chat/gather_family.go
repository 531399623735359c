// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/kube/index"
)

// familyReader reads what stands above and below a chat.
type familyReader struct {
	cache, live client.Reader
	written     *written
	costs       *subChatCosts
	idle        *idleChats
}

// readFamily reads what the chats above and below mean for this one.
func (r *familyReader) readFamily(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	s.facts.HasWorkspace = chat.WorkspaceSource() != nil // That of the root, if there is one above.
	if chat.Spec.ParentRef == nil {
		s.facts.Root = tree.Root(chat, s.facts.HasWorkspace)
	}
	if !concernsFamily(chat) {
		return nil
	}
	var chats v1beta1.ChatList
	// Package tree only reads.
	if err := r.cache.List(ctx, &chats, client.InNamespace(chat.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing chats: %w", err)
	}
	r.written.overlay(chat.Namespace, chats.Items)
	members := tree.Of(chats.Items)
	above, complete := members.Ancestors(chat)
	f := &s.facts
	f.Suspended = tree.Suspended(chat, above)
	if top := tree.Archiving(chat, above); top != nil {
		f.Archive, f.FamilyAtWork = true, members.AtWork(top, chat.Name)
	}
	f.ParentArchived = len(above) > 0 && above[0].Status.Archived
	if err := r.readCosts(ctx, s, members); err != nil {
		return err
	}
	if chat.Spec.ParentRef == nil {
		return nil
	}
	return r.readAbove(ctx, s, members, above, complete)
}

// concernsFamily reports whether other chats of the family mean something for this one.
func concernsFamily(chat *v1beta1.Chat) bool {
	return chat.Spec.ParentRef != nil || chat.Spec.Archived || chat.Status.Archived || tree.CountsSubChats(chat)
}

// readAbove reads what a sub-chat has of the chats above it.
func (r *familyReader) readAbove(ctx context.Context, s *scope, members *tree.Family, above []*v1beta1.Chat,
	complete bool) error {
	chat, f := s.facts.Chat, &s.facts
	for i := range above { // Workspace and limits of a family are those of the chat at the top.
		above[i] = chatclass.Of(above[i], s.classes)
	}
	f.BudgetsAbove = members.BudgetsAbove(chat, above)
	f.HasWorkspace = complete && len(above) > 0 && above[len(above)-1].WorkspaceSource() != nil
	if complete && len(above) > 0 {
		f.Root = tree.Root(above[len(above)-1], f.HasWorkspace)
	}
	f.ParentUID = chat.Status.Internal.ParentUID
	if len(above) > 0 && f.ParentUID == "" {
		f.ParentUID = string(above[0].UID)
	}
	return r.judgePlace(ctx, s, members, above, complete)
}

// judgePlace finds out whether the chat may be where it is.
func (r *familyReader) judgePlace(ctx context.Context, s *scope, members *tree.Family, above []*v1beta1.Chat,
	complete bool) error {
	chat := s.facts.Chat
	if chat.Status.Internal.ParentUID != "" &&
		(len(above) == 0 || string(above[0].UID) != chat.Status.Internal.ParentUID) {
		gone, err := r.parentIsGone(ctx, chat)
		s.orphan = gone
		return err
	}
	if chat.Status.History.Version > 0 {
		return nil // What has begun continues.
	}
	parent := chat.Spec.ParentRef.Name
	switch limit := members.Exceeds(chat, above); {
	case !complete:
		block(&s.facts, v1beta1.ErrorParentNotFound,
			fmt.Sprintf("Chat %s, which parentRef names, or one above it does not exist", parent),
			"Create it, or delete this chat")
	case limit != "":
		root := above[len(above)-1].Name
		block(&s.facts, v1beta1.ErrorSubChatLimitExceeded, fmt.Sprintf("Chat %s allows no such sub-chat (limits.%s)", root,
			limit), "Raise the limit there, or delete a sub-chat")
	}
	return nil
}

// block keeps the chat from taking messages up.
func block(f *plan.Facts, reason v1beta1.ErrorReason, wrong, advice string) {
	f.Model, f.Blocked = nil, &v1beta1.GenerationError{Reason: reason, Message: wrong, Advice: advice}
}

// parentIsGone asks the API server: the cache may not show the parent yet.
func (r *familyReader) parentIsGone(ctx context.Context, chat *v1beta1.Chat) (bool, error) {
	var parent v1beta1.Chat
	err := r.live.Get(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: chat.Spec.ParentRef.Name}, &parent)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading chat %s: %w", chat.Spec.ParentRef.Name, err)
	}
	return string(parent.UID) != chat.Status.Internal.ParentUID, nil
}

// root is the chat at the top of the family, with the settings that are in force; nil if a chat above is missing.
func (r *familyReader) root(ctx context.Context, s *scope) (*v1beta1.Chat, error) {
	chat := s.facts.Chat
	for range v1beta1.MaxFamilyDepth + 1 {
		switch {
		case chat.Spec.ParentRef != nil:
		case chat == s.facts.Chat: // It has them already.
			return chat, nil
		default:
			return chatclass.Of(chat, s.classes), nil
		}
		above, err := r.relative(ctx, chat.Namespace, chat.Spec.ParentRef.Name)
		if err != nil || above == nil {
			return nil, err
		}
		chat = above
	}
	return nil, nil
}

// readSubChats finds out whether there are sub-chats.
func (r *familyReader) readSubChats(ctx context.Context, s *scope) error {
	chat := s.facts.Chat
	var children v1beta1.ChatList
	err := r.cache.List(ctx, &children, client.InNamespace(chat.Namespace),
		client.MatchingFields{index.ChatsByParent: chat.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the sub-chats of chat %s: %w", chat.Name, err)
	}
	s.facts.HasSubChats = len(children.Items) > 0
	return nil
}

// readSubChat finds out whether a sub-chat that calls wait for is at work.
func (r *familyReader) readSubChat(ctx context.Context, s *scope, name string) error {
	works, err := r.atWork(ctx, s, name)
	if err != nil {
		return err
	}
	if s.facts.SubChats == nil {
		s.facts.SubChats = map[string]bool{}
	}
	s.facts.SubChats[name] = works
	return nil
}

// aboutToBegin is how long a message of a sub-chat at rest is waited for before the sub-chat is looked at again: 1 s.
// That it was seen and waits for something else changes nothing in the sub-chat, and so requeues no chat.
const aboutToBegin = time.Second

// atWork reports whether a chat below this one has something under way, or a message that it is about to take up.
func (r *familyReader) atWork(ctx context.Context, s *scope, name string) (bool, error) {
	chat := s.facts.Chat
	lookup := func(name string) (*v1beta1.Chat, error) { return r.relative(ctx, chat.Namespace, name) }
	sub, err := lookup(name)
	if err != nil || sub == nil {
		return false, err
	}
	if below, err := tree.Below(sub, chat.Name, lookup); err != nil || !below {
		return false, err
	}
	if !tree.Settled(sub) {
		return true, nil
	}
	var messages v1beta1.ChatMessageList
	err = r.cache.List(ctx, &messages, client.InNamespace(sub.Namespace),
		client.MatchingFields{index.UnsettledByChat: sub.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the open messages of chat %s: %w", sub.Name, err)
	}
	// One that has been seen and is still open waits for more than this.
	begins := slices.ContainsFunc(messages.Items, func(m v1beta1.ChatMessage) bool {
		return m.Spec.Role == v1beta1.RoleUser && m.Status.ObservedGeneration != m.Generation && plan.IsOpen(sub, &m)
	})
	if begins {
		s.lookAgain = plan.Sooner(s.lookAgain, aboutToBegin)
	}
	return begins, nil
}

// relative reads a chat; nil if there is none. One that has just been created may not be in the cache.
func (r *familyReader) relative(ctx context.Context, namespace, name string) (*v1beta1.Chat, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	for _, reader := range []client.Reader{r.cache, r.live} {
		var chat v1beta1.Chat
		err := reader.Get(ctx, key, &chat)
		if err == nil {
			return r.written.newest(&chat), nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading chat %s: %w", key, err)
		}
	}
	return nil, nil
}
