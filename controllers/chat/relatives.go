// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/index"
	"parley.dev/parley/internal/requeue"
)

// readFamily reads what the chats above and below mean for this one.
func (r *Reconciler) readFamily(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	if chat.Spec.ParentRef == nil && !chat.Spec.Archived && !chat.Status.Archived {
		return nil
	}
	var chats v1alpha1.ChatList
	// Package family only reads.
	if err := r.Client.List(ctx, &chats, client.InNamespace(chat.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing chats: %w", err)
	}
	members := tree.Of(chats.Items)
	above, complete := members.Ancestors(chat)
	f := &s.facts
	f.Suspended = tree.Suspended(chat, above)
	if top := tree.Archiving(chat, above); top != nil {
		f.Archive, f.FamilyAtWork = true, members.AtWork(top, chat.Name)
	}
	f.ParentArchived = len(above) > 0 && above[0].Status.Archived
	if chat.Spec.ParentRef == nil {
		return nil
	}
	f.ParentUID = chat.Status.ParentUID
	if len(above) > 0 && f.ParentUID == "" {
		f.ParentUID = string(above[0].UID)
	}
	return r.judgePlace(ctx, s, members, above, complete)
}

// judgePlace finds out whether the chat may be where it is.
func (r *Reconciler) judgePlace(ctx context.Context, s *seen, members *tree.Family, above []*v1alpha1.Chat, complete bool) error {
	chat := s.facts.Chat
	if chat.Status.ParentUID != "" && (len(above) == 0 || string(above[0].UID) != chat.Status.ParentUID) {
		gone, err := r.parentIsGone(ctx, chat)
		s.orphan = gone
		return err
	}
	if chat.Status.History.Version > 0 {
		return nil // What has begun goes on.
	}
	parent := chat.Spec.ParentRef.Name
	switch limit := members.Exceeds(chat, above); {
	case !complete:
		block(&s.facts, v1alpha1.ErrorParentNotFound, fmt.Sprintf("Chat %s, which parentRef names, or one above it does not exist", parent), "Create it, or delete this chat")
	case limit != "":
		root := above[len(above)-1].Name
		block(&s.facts, v1alpha1.ErrorFamilyLimitExceeded, fmt.Sprintf("Chat %s allows no such sub-chat (limits.%s)", root, limit), "Raise the limit there, or delete a sub-chat")
	}
	return nil
}

// block keeps the chat from taking messages up.
func block(f *plan.Facts, reason v1alpha1.ErrorReason, wrong, advice string) {
	f.Model, f.Blocked = nil, &v1alpha1.GenerationError{Reason: reason, Message: wrong, Advice: advice}
}

// parentIsGone asks the API server: the cache may not show the parent yet.
func (r *Reconciler) parentIsGone(ctx context.Context, chat *v1alpha1.Chat) (bool, error) {
	var parent v1alpha1.Chat
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: chat.Namespace, Name: chat.Spec.ParentRef.Name}, &parent)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading chat %s: %w", chat.Spec.ParentRef.Name, err)
	}
	return string(parent.UID) != chat.Status.ParentUID, nil
}

// removeOrphan deletes a sub-chat whose parent has been deleted.
func (r *Reconciler) removeOrphan(ctx context.Context, chat *v1alpha1.Chat) error {
	uid := chat.UID
	err := r.Client.Delete(ctx, chat, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("removing chat %s/%s, whose parent is gone: %w", chat.Namespace, chat.Name, err)
	}
	return nil
}

// relatives finds the chats for which a change of this one may mean something.
func (r *Reconciler) relatives(ctx context.Context, o client.Object) []reconcile.Request {
	chat, ok := o.(*v1alpha1.Chat)
	if !ok {
		return nil
	}
	var children v1alpha1.ChatList
	ofParent := client.MatchingFields{index.ChatsByParent: chat.Name}
	if !requeue.List(ctx, r.Client, &children, client.InNamespace(chat.Namespace), ofParent, client.UnsafeDisableDeepCopy) ||
		len(children.Items) == 0 && chat.Spec.ParentRef == nil {
		return nil
	}
	var chats v1alpha1.ChatList
	if !requeue.List(ctx, r.Client, &chats, client.InNamespace(chat.Namespace), client.UnsafeDisableDeepCopy) {
		return nil
	}
	members := tree.Of(chats.Items)
	top := chat
	if above, _ := members.Ancestors(chat); len(above) > 0 {
		top = above[len(above)-1]
		if tree.Archiving(chat, above) == nil {
			top = chat
		}
	}
	requests := []reconcile.Request{request(top.Namespace, top.Name)}
	for _, member := range append(members.Descendants(top), members.Unbegun(chat)...) {
		requests = append(requests, request(member.Namespace, member.Name)) // The queue holds each once.
	}
	return requests
}

// concernsRelatives tells changes of a chat that may mean something for its relatives from all the others.
func concernsRelatives() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Chat)
		after, also := e.ObjectNew.(*v1alpha1.Chat)
		if !ok || !also {
			return false
		}
		return before.Generation != after.Generation || before.Status.Archived != after.Status.Archived ||
			before.Status.Phase != after.Status.Phase && (after.Spec.ParentRef != nil || after.Spec.Archived)
	}}
}
