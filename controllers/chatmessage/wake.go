// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// chatHandler wakes the messages whose status, or whose right to exist, may follow from a change of their chat.
func (r *Reconciler) chatHandler() handler.EventHandler {
	return handler.Funcs{
		// A chat that is new to this process may have taken the place of an older one of its name, like one that is gone.
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			if chat, ok := e.Object.(*v1beta1.Chat); ok && e.IsInInitialList {
				r.wakeWorking(ctx, q, chat)
				return
			}
			r.wake(ctx, q, e.Object, index.MessagesByChat)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			r.wakeLast(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if replaced(e.ObjectOld, e.ObjectNew) || wasCut(e.ObjectOld, e.ObjectNew) {
				r.wake(ctx, q, e.ObjectNew, index.MessagesByChat)
				return
			}
			wakeNamed(q, e.ObjectOld, e.ObjectNew)
			r.wake(ctx, q, e.ObjectNew, index.UnsettledByChat, index.ReportsByChat)
		},
	}
}

// replaced reports whether the chat is another one of its name, or about to go.
func replaced(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || !after.GetDeletionTimestamp().IsZero()
}

// wasCut reports whether the history lost messages: as long as one was missing,
// no one could tell which others belonged to it.
func wasCut(before, after client.Object) bool {
	old, ok := before.(*v1beta1.Chat)
	chat, also := after.(*v1beta1.Chat)
	return ok && also && (chat.Status.History.Length < old.Status.History.Length ||
		(chat.Status.Internal.Superseded == nil) != (old.Status.Internal.Superseded == nil))
}

// wake wakes the chat's messages that the indexes find.
func (r *Reconciler) wake(ctx context.Context, q queue, chat client.Object, fields ...string) {
	for _, field := range fields {
		messages, ok := r.messagesOf(ctx, chat, field)
		if !ok {
			return
		}
		for i := range messages {
			add(q, &messages[i])
		}
	}
}

// wakeLast wakes all of the chat's messages, behind all others: those of thousands of chats that are deleted at once
// would keep back what messages of other chats say, for which people wait.
func (r *Reconciler) wakeLast(ctx context.Context, q queue, chat client.Object) {
	messages, _ := r.messagesOf(ctx, chat, index.MessagesByChat)
	for i := range messages {
		addLast(q, &messages[i])
	}
}

// wakeWorking wakes those of the chat's messages that are not at rest, as the chat is now: how it became so this
// process has not seen.
func (r *Reconciler) wakeWorking(ctx context.Context, q queue, chat *v1beta1.Chat) {
	messages, _ := r.messagesOf(ctx, chat, index.MessagesByChat)
	followed := map[string]bool{}
	for i := range messages {
		for _, name := range index.FollowedBy(&messages[i]) {
			followed[name] = true
		}
	}
	for i := range messages {
		m := &messages[i]
		s := &scope{message: m, chat: chat, followed: followed[m.Name] || endsWith(chat, m.Name)}
		if s.noteChat(); !atRest(s) {
			add(q, m)
		}
	}
}

// wakeFollowed wakes the messages that a generated one follows if the chat's status says no longer where they stand.
// The event of the chat came first then, as it may where another manager has committed the message.
func (r *Reconciler) wakeFollowed(ctx context.Context, e event.CreateEvent, q queue) {
	m, ok := e.Object.(*v1beta1.ChatMessage)
	if !ok || m.Spec.Generation == nil || e.IsInInitialList {
		return
	}
	var chat v1beta1.Chat
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ChatRef.Name}, &chat)
	if err != nil || chat.Status.History.Version <= m.Spec.Generation.HistoryVersion {
		return
	}
	for _, name := range index.FollowedBy(m) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: name}})
	}
}

func (r *Reconciler) messagesOf(ctx context.Context, chat client.Object, field string) ([]v1beta1.ChatMessage, bool) {
	var messages v1beta1.ChatMessageList
	ok := requeue.List(ctx, r.Client, &messages, client.InNamespace(chat.GetNamespace()),
		client.MatchingFields{field: chat.GetName()}, client.UnsafeDisableDeepCopy)
	return messages.Items, ok
}

func add(q queue, m *v1beta1.ChatMessage) {
	q.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
}

func addLast(q queue, m *v1beta1.ChatMessage) {
	ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		add(q, m)
		return
	}
	ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)},
		reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
}

// wakeNamed wakes the messages of the turn and of the one before, and the result of an attempt that is over: it was
// committed or is useless.
func wakeNamed(q queue, before, after client.Object) {
	old, ok := before.(*v1beta1.Chat)
	chat, also := after.(*v1beta1.Chat)
	if !ok || !also {
		return
	}
	add := func(name string) {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: chat.Namespace, Name: name}})
	}
	if chat.Status.Turn != nil {
		add(chat.Status.Turn.Message)
	}
	if tail := chat.Status.Internal.Tail; len(tail) > 0 && tail[len(tail)-1].PreviousTurn != nil {
		add(tail[len(tail)-1].PreviousTurn.Message)
	}
	if before := attempts.Of(old.UID, &old.Status); before.Attempt > 0 && before != attempts.Of(chat.UID, &chat.Status) {
		add(before.ResultName(old.Name))
	}
}
