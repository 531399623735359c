// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
)

// relatives finds the chats for which a change of this one may mean something.
func (e *enqueuer) relatives(ctx context.Context, o client.Object) []reconcile.Request {
	chat, ok := o.(*v1beta1.Chat)
	if !ok {
		return nil
	}
	var children v1beta1.ChatList
	ofParent := client.MatchingFields{index.ChatsByParent: chat.Name}
	if !requeue.List(ctx, e.cache, &children, client.InNamespace(chat.Namespace), ofParent,
		client.UnsafeDisableDeepCopy) ||
		len(children.Items) == 0 && chat.Spec.ParentRef == nil {
		return nil
	}
	var chats v1beta1.ChatList
	if !requeue.List(ctx, e.cache, &chats, client.InNamespace(chat.Namespace), client.UnsafeDisableDeepCopy) {
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
		before, ok := e.ObjectOld.(*v1beta1.Chat)
		after, also := e.ObjectNew.(*v1beta1.Chat)
		if !ok || !also {
			return false
		}
		return before.Generation != after.Generation || before.Status.Archived != after.Status.Archived ||
			before.Status.Phase != after.Status.Phase && (after.Spec.ParentRef != nil || after.Spec.Archived)
	}}
}

// chatsAbove finds the chats above this one, each of which may wait for it, or for all below it to rest. Whether one
// does is for its own pass to find out: its status may be about to say so.
func (e *enqueuer) chatsAbove(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	chat, ok := o.(*v1beta1.Chat)
	for ok && chat.Spec.ParentRef != nil && len(requests) < v1beta1.MaxFamilyDepth {
		key := types.NamespacedName{Namespace: chat.Namespace, Name: chat.Spec.ParentRef.Name}
		requests = append(requests, reconcile.Request{NamespacedName: key})
		chat = &v1beta1.Chat{}
		ok = e.cache.Get(ctx, key, chat) == nil
	}
	return requests
}

// chatsOfWorkspace are the chat of the workspace's name and those below it, whose calls may wait for it: also for it to
// go, if it is another chat's.
func (e *enqueuer) chatsOfWorkspace(ctx context.Context, o client.Object) []reconcile.Request {
	w, ok := o.(*v1beta1.Workspace)
	if !ok {
		return nil
	}
	requests := []reconcile.Request{request(w.Namespace, w.Name)}
	for seen := 0; seen < len(requests); seen++ {
		var below v1beta1.ChatList
		if !requeue.List(ctx, e.cache, &below, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy,
			client.MatchingFields{index.ChatsByParent: requests[seen].Name}) {
			return requests
		}
		for i := range below.Items {
			if next := request(w.Namespace, below.Items[i].Name); !slices.Contains(requests, next) {
				requests = append(requests, next)
			}
		}
	}
	return requests
}

// concernsAbove tells the changes of sub-chats after which no chat need wait for them, which change since when a family
// rests, or which budgets above have to record, from all the others.
func concernsAbove() predicate.Predicate {
	sub := func(o client.Object) bool {
		chat, ok := o.(*v1beta1.Chat)
		return ok && chat.Spec.ParentRef != nil
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return sub(e.Object) },
		DeleteFunc: func(e event.DeleteEvent) bool { return sub(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1beta1.Chat)
			after, also := e.ObjectNew.(*v1beta1.Chat)
			return ok && also && sub(after) && (tree.Settled(after) && differs(before, after) || rest(before, after))
		},
	}
}

// rest reports whether the chat has come to rest, or has something to do again: the family of one that is to go some
// time after that restarts the count.
func rest(before, after *v1beta1.Chat) bool {
	return !before.Status.IdleSince.Equal(after.Status.IdleSince)
}

func differs(before, after *v1beta1.Chat) bool {
	x, y := meta.FindStatusCondition(before.Status.Conditions, v1beta1.ConditionReady),
		meta.FindStatusCondition(after.Status.Conditions, v1beta1.ConditionReady)
	return before.Status.Phase != after.Status.Phase || before.Status.History.Version != after.Status.History.Version ||
		x == nil || y == nil || x.Reason != y.Reason || x.Message != y.Message
}
