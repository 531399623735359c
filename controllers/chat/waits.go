// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/index"
)

// readSubChats finds out whether there are sub-chats, and which of those that calls wait for are at work.
func (r *Reconciler) readSubChats(ctx context.Context, s *seen) error {
	chat := s.facts.Chat
	var children v1alpha1.ChatList
	err := r.Client.List(ctx, &children, client.InNamespace(chat.Namespace), client.MatchingFields{index.ChatsByParent: chat.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the sub-chats of chat %s: %w", chat.Name, err)
	}
	s.facts.HasSubChats = len(children.Items) > 0
	for _, name := range plan.AwaitedChats(&s.facts) {
		works, err := r.atWork(ctx, s, name)
		if err != nil {
			return err
		}
		if works {
			s.facts.SubChatsAtWork = append(s.facts.SubChatsAtWork, name)
		}
	}
	return nil
}

// aboutToBegin is how long a message of a sub-chat at rest is waited for before the sub-chat is looked at again: 1 s. That it was seen
// and waits for something else changes nothing in the sub-chat, and so calls nobody.
const aboutToBegin = time.Second

// atWork reports whether a chat below this one has something under way, or a message that it is about to take up.
func (r *Reconciler) atWork(ctx context.Context, s *seen, name string) (bool, error) {
	chat := s.facts.Chat
	lookup := func(name string) (*v1alpha1.Chat, error) { return r.relative(ctx, chat.Namespace, name) }
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
	var messages v1alpha1.ChatMessageList
	err = r.Client.List(ctx, &messages, client.InNamespace(sub.Namespace), client.MatchingFields{index.UnsettledByChat: sub.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing the open messages of chat %s: %w", sub.Name, err)
	}
	// One that has been seen and is still open waits for more than this.
	begins := slices.ContainsFunc(messages.Items, func(m v1alpha1.ChatMessage) bool {
		return m.Spec.Role == v1alpha1.RoleUser && m.Status.ObservedGeneration != m.Generation && plan.IsOpen(sub, &m)
	})
	if begins {
		s.lookAgain = plan.Sooner(s.lookAgain, aboutToBegin)
	}
	return begins, nil
}

// relative reads a chat; nil if there is none. One that has just been created may not be in the cache.
func (r *Reconciler) relative(ctx context.Context, namespace, name string) (*v1alpha1.Chat, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var chat v1alpha1.Chat
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

// chatsAbove finds the chats above this one, each of which may wait for it. Whether one does is for its own pass to find out:
// its status may be about to say so.
func (r *Reconciler) chatsAbove(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	chat, ok := o.(*v1alpha1.Chat)
	for ok && chat.Spec.ParentRef != nil && len(requests) < v1alpha1.MaxFamilyDepth {
		key := types.NamespacedName{Namespace: chat.Namespace, Name: chat.Spec.ParentRef.Name}
		requests = append(requests, reconcile.Request{NamespacedName: key})
		chat = &v1alpha1.Chat{}
		ok = r.Client.Get(ctx, key, chat) == nil
	}
	return requests
}

// endsWaits tells the changes of sub-chats after which nobody need wait for them from all the others.
func endsWaits() predicate.Predicate {
	sub := func(o client.Object) bool {
		chat, ok := o.(*v1alpha1.Chat)
		return ok && chat.Spec.ParentRef != nil
	}
	return predicate.Funcs{
		// A manager that starts looks at every chat anyway, and one that is created has work.
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool { return sub(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.Chat)
			after, also := e.ObjectNew.(*v1alpha1.Chat)
			return ok && also && sub(after) && tree.Settled(after) && differs(before, after)
		},
	}
}

func differs(before, after *v1alpha1.Chat) bool {
	x, y := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(after.Status.Conditions, v1alpha1.ConditionReady)
	return before.Status.Phase != after.Status.Phase || before.Status.History.Version != after.Status.History.Version ||
		x == nil || y == nil || x.Reason != y.Reason || x.Message != y.Message
}
