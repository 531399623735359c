// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
)

// SetupWithManager registers the controller and its watches. Each wait of a chat has one sender, and nothing polls. A
// chat that waits for something that no one reports waits for good:
//
//   - Starting, AwaitingFirstMessage: its messages.
//   - Restoring: its annotation, which the restore removes.
//   - ModelConfigNotFound: every ChatModelConfig, for chats with a turn or with open messages; the end of the first
//     10 seconds; in a turn, its own time.
//   - ModelConfigDisabled: every ChatModelConfig, for chats with open messages.
//   - ChatClassNotFound: every ChatClass of the name; in a turn, its own time.
//   - ModelConfigNotAllowed: its ChatClass; every ChatModelConfig; its messages.
//   - ParentNotFound: the creation of a chat above.
//   - SubChatLimitExceeded: each chat of the family that is deleted, archived or unarchived, or whose spec changes;
//     it wakes all that have not begun.
//   - WaitingForPod, Generating, ExecutingTools, Compacting: its pod, and its result, also when that is deleted
//     before the commit.
//   - Retrying, Interrupting: its own time.
//   - GenerationPodRejected, PromptRejected: its own time, because no event reports the cause of the refusal; its
//     messages.
//   - Forking, ForkSourceNotFound, ForkRejected: its own time.
//   - ForkFilesNotCopied: the Workspace's status; its own time, for the source.
//   - PromptNameConflict: the removal of the message that has the name; before it, the end of the first 10 seconds.
//   - BudgetReached: its own spec and those of the chats above; their ChatClasses.
//   - ModelPriceMissing: the same, and every ChatModelConfig.
//   - WaitingForModel: the limits of its ChatModelConfig, when a call ends or they are raised; the time that the
//     provider asked to wait.
//   - WaitingForEdit: the annotation of its message; the time at which that is released.
//   - WaitingForCapacity: the gate, when a slot is free or a quota changes.
//   - WaitingForSubChats: every chat below that comes to rest or is deleted; the deadlines of the calls; one second,
//     if a sub-chat at rest has a message that was not seen.
//   - WaitingForWorkspace: the Workspace's status; its own time, if the API server refuses the Workspace.
//   - WaitingForMCPServers: each second, for the objects that are waited for; the Workspace's status; one minute after
//     the turn began.
//   - RequiresAction: messages and ToolApprovals; its deadline.
//   - Suspended: its own spec and those of the chats above.
//   - its retention, at rest: its own time; every chat below that comes to rest, has work again or is deleted; its
//     ChatClass; its own spec.
//   - its sharing: the next until; every chat below that is created or deleted; its own spec.
//   - Archiving: every chat of the family to be archived that comes to rest, is archived or is deleted; its own rest,
//     in the same pass.
//
// Every ChatModelConfig also wakes the chats that report AdvisorUnavailable or ModelConfigFallback, and the chats
// whose advisor follows from it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	e := &enqueuer{cache: mgr.GetClient(), memory: r.memory}
	// Status updates are ignored: this controller is their only writer.
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	changedOrAnnotated := builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{},
		predicate.AnnotationChangedPredicate{}))
	err := ctrl.NewControllerManagedBy(mgr).
		Named("chat").
		For(&v1beta1.Chat{}, changedOrAnnotated).
		Watches(&v1beta1.Chat{}, requeue.News(hasWork, &handler.EnqueueRequestForObject{}),
			builder.WithPredicates(requeue.Listed())).
		Watches(&v1beta1.Chat{}, handler.EnqueueRequestsFromMapFunc(e.relatives),
			builder.WithPredicates(concernsRelatives())).
		Watches(&v1beta1.Chat{}, handler.EnqueueRequestsFromMapFunc(e.chatsAbove), builder.WithPredicates(concernsAbove())).
		Watches(&v1beta1.Chat{}, e.shownHandler()).
		Watches(&v1beta1.Chat{}, e.restHandler()).
		WatchesRawSource(r.slots).
		WatchesRawSource(r.models).
		Watches(&v1beta1.ChatMessage{}, e.messageHandler(), changedOrAnnotated).
		Watches(&v1beta1.ToolApproval{}, handler.EnqueueRequestsFromMapFunc(chatOfApproval), changed).
		Watches(&v1beta1.Workspace{}, handler.EnqueueRequestsFromMapFunc(e.chatsOfWorkspace)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(e.chatsOfPod)).
		Watches(&v1beta1.ChatModelConfig{}, r.models.configHandler()).
		Watches(&v1beta1.ChatModelConfig{}, handler.EnqueueRequestsFromMapFunc(e.chatsWithOpenMessages), changed).
		Watches(&v1beta1.ChatModelConfig{}, handler.EnqueueRequestsFromMapFunc(e.chatsMarkedBy), changed).
		Watches(&v1beta1.ChatClass{}, handler.EnqueueRequestsFromMapFunc(e.chatsOfClass), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.options.Workers, RateLimiter: requeue.Limiter(),
			NewQueue: requeue.NewFairQueue}).
		Complete(requeue.IgnoreGone(r))
	if err = errors.Join(err, r.observer.countChats(mgr)); err != nil {
		return fmt.Errorf("setting up the chat controller: %w", err)
	}
	return nil
}

// enqueuer finds the chats that an event may mean something for.
type enqueuer struct {
	cache  client.Reader
	memory *memory
}

// hasWork reports whether the chat may have something to do. What messages have for it, they say themselves.
func hasWork(o client.Object) bool {
	chat, ok := o.(*v1beta1.Chat)
	return ok && (!chat.DeletionTimestamp.IsZero() || chat.Status.Phase != v1beta1.ChatWaiting ||
		chat.Status.ObservedGeneration != chat.Generation ||
		chat.Status.Wait != nil && chat.Status.Wait.For == v1beta1.WaitForRestore || chat.IsForking() ||
		mayHaveReaders(chat) || len(chat.Status.Queue) > 0 || len(plan.RequestsOf(chat)) > 0)
}

// shownHandler forgets what was written last to a chat that the cache shows now, and enqueues nothing.
func (e *enqueuer) shownHandler() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, update event.UpdateEvent,
		_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if chat, ok := update.ObjectNew.(*v1beta1.Chat); ok {
			e.memory.written.newest(chat)
		}
	}}
}

// messageHandler enqueues a message's chat, and the chat whose result the message is named like. When one is deleted,
// the chat's history has to be looked at, and it may be the result that the chat waits for.
func (e *enqueuer) messageHandler() handler.EventHandler {
	enqueue := requeue.News(index.Unsettled, handler.EnqueueRequestsFromMapFunc(chatOfMessage))
	return handler.Funcs{
		CreateFunc: enqueue.Create, UpdateFunc: enqueue.Update, GenericFunc: enqueue.Generic,
		DeleteFunc: func(ctx context.Context, deletion event.DeleteEvent,
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if message, ok := deletion.Object.(*v1beta1.ChatMessage); ok {
				e.memory.deleted.put(message)
				if !index.IsReport(message) {
					e.memory.chains.forget(request(message.Namespace, message.Spec.ChatRef.Name).NamespacedName)
				}
			}
			enqueue.Delete(ctx, deletion, queue)
		},
	}
}

// chatOfMessage is the chat that the message names, and the one whose prompt has its name,
// which waits until it is gone.
func chatOfMessage(_ context.Context, o client.Object) []reconcile.Request {
	message, ok := o.(*v1beta1.ChatMessage)
	if !ok {
		return nil
	}
	requests := []reconcile.Request{request(message.Namespace, message.Spec.ChatRef.Name)}
	if chat, ok := strings.CutSuffix(message.Name, plan.PromptSuffix); ok && chat != message.Spec.ChatRef.Name {
		requests = append(requests, request(message.Namespace, chat))
	}
	// A message of another chat can have a name that a result of this one would have.
	if chat := fence.ChatOfResult(message.Name); chat != "" && chat != message.Spec.ChatRef.Name {
		requests = append(requests, request(message.Namespace, chat))
	}
	return requests
}

func chatOfApproval(_ context.Context, o client.Object) []reconcile.Request {
	approval, ok := o.(*v1beta1.ToolApproval)
	if !ok {
		return nil
	}
	return []reconcile.Request{request(approval.Namespace, approval.Spec.ChatRef.Name)}
}

func (e *enqueuer) chatsOfPod(ctx context.Context, o client.Object) []reconcile.Request {
	return e.chatsBy(ctx, index.ChatsByPod, o)
}

// chatsMarkedBy are the chats, also idle ones, for which the ChatModelConfig may matter: their turn may wait for it, it
// may give them advice, or another one answers than they name.
func (e *enqueuer) chatsMarkedBy(ctx context.Context, o client.Object) []reconcile.Request {
	var classes v1beta1.ChatClassList
	var chats v1beta1.ChatList
	if !requeue.List(ctx, e.cache, &classes, client.InNamespace(o.GetNamespace())) ||
		!requeue.List(ctx, e.cache, &chats, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy) {
		return nil
	}
	var requests []reconcile.Request
	for i := range chats.Items {
		chat := &chats.Items[i]
		if !chat.Status.Archived && (marked(&chat.Status) ||
			modelconfig.AdvisorOf(&chatclass.Of(chat, classes.Items).Spec) == o.GetName()) {
			requests = append(requests, request(chat.Namespace, chat.Name))
		}
	}
	return requests
}

// marked reports whether a pass of the chat may rest on a ChatModelConfig that was missing. A chat with a turn may have
// begun to wait in a pass whose write the cache does not show yet.
func marked(st *v1beta1.ChatStatus) bool {
	return st.Phase.HasTurn() || st.Wait != nil && st.Wait.For == v1beta1.WaitForModelConfig ||
		meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionAdvisorUnavailable) ||
		meta.IsStatusConditionTrue(st.Conditions, v1beta1.ConditionModelConfigFallback)
}

// chatsOfClass are the chats that have the class, or may have it now: those that name it, and if it is or was a default
// those that name none. Which of several is the default is not asked here.
func (e *enqueuer) chatsOfClass(ctx context.Context, o client.Object) []reconcile.Request {
	class, ok := o.(*v1beta1.ChatClass)
	var chats v1beta1.ChatList
	if !ok || !requeue.List(ctx, e.cache, &chats, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy) {
		return nil
	}
	var requests []reconcile.Request
	members := tree.Of(chats.Items)
	for i := range chats.Items {
		chat := &chats.Items[i]
		if !concerns(class, chat) {
			continue
		}
		requests = append(requests, request(chat.Namespace, chat.Name))
		for _, below := range members.Descendants(chat) { // Its budget is theirs, too. The queue holds each once.
			requests = append(requests, request(below.Namespace, below.Name))
		}
	}
	return requests
}

// concerns reports whether a change of the class may mean something for the chat. To one that is archived it means
// something only if that goes some day.
func concerns(class *v1beta1.ChatClass, chat *v1beta1.Chat) bool {
	has := chat.Status.ChatClass != nil && chat.Status.ChatClass.Name == class.Name
	may := chat.Spec.ChatClassName == class.Name || chat.Spec.ChatClassName == "" && class.Spec.Default
	return (has || may) && (!chat.Status.Archived || chat.Status.ExpiresAt != nil || class.Spec.Expires())
}

// chatsBy are the chats of the object's namespace that the index knows under its name.
func (e *enqueuer) chatsBy(ctx context.Context, field string, o client.Object) []reconcile.Request {
	var chats v1beta1.ChatList
	if !requeue.List(ctx, e.cache, &chats, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{field: o.GetName()}) {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(chats.Items))
	for i := range chats.Items {
		requests = append(requests, request(chats.Items[i].Namespace, chats.Items[i].Name))
	}
	return requests
}

func (e *enqueuer) chatsWithOpenMessages(ctx context.Context, o client.Object) []reconcile.Request {
	var messages v1beta1.ChatMessageList
	if !requeue.List(ctx, e.cache, &messages, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{index.UnsettledByChat: index.AnyChat}) {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(messages.Items))
	for i := range messages.Items {
		requests = append(requests, request(messages.Items[i].Namespace, messages.Items[i].Spec.ChatRef.Name))
	}
	return requests
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
