// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat reconciles Chats: it gathers facts, lets package plan decide, acts, and reports in one status write. It is
// the only writer of Chat.status, and each write is a compare-and-swap on the Chat's resourceVersion.
package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/index"
	"parley.dev/parley/internal/modelconfig"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/requeue"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// maxConflicts is how often one pass decides anew when somebody else changed the chat in between. More often than that
// it goes back to the queue.
const maxConflicts = 5

// Reconciler drives Chats.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache, where a decision must not rest on an old view.
	Live client.Reader
	// Recorder of Events.
	Recorder events.EventRecorder
	// Ledger of generation pods.
	Ledger *placement.Ledger
	// Pods says what generation pods are built from, all but the namespace and its keys.
	Pods podspec.Settings
	// EnsureAccess sees to it that a namespace has what its generation pods run with. It is called before a pod is created.
	EnsureAccess func(ctx context.Context, namespace string) error
	// PodStart is how long a generation pod may take until it is ready for the first time.
	PodStart time.Duration
	// PodCapacity is how many chats a generation pod serves at once.
	PodCapacity int
	// Gate bounds how many chats generate at once.
	Gate *capacity.Gate
	// LoadLimits tells the gate what all quotas say. It is called before the first chat passes.
	LoadLimits func(context.Context) error
	// Workers is how many chats are reconciled at once.
	Workers int
	// Now tells the time.
	Now func() time.Time
	// Metrics and Tracer say how turns go; nil: nobody is told.
	Metrics *telemetry.Manager
	Tracer  *tracing.Tracer

	written  written
	creation creation
	chains   chains
	deleted  deleted
	places   places
}

// SetupWithManager registers the reconciler and what wakes it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	// A status follows from what this reconciler decided: it needs no second look.
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("chat").
		For(&v1alpha1.Chat{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Watches(&v1alpha1.Chat{}, handler.EnqueueRequestsFromMapFunc(r.relatives), builder.WithPredicates(concernsRelatives())).
		Watches(&v1alpha1.Chat{}, handler.EnqueueRequestsFromMapFunc(r.chatsAbove), builder.WithPredicates(endsWaits())).
		WatchesRawSource(source.Func(r.called)).
		Watches(&v1alpha1.ChatMessage{}, r.messageHandler(), changed).
		Watches(&v1alpha1.ToolApproval{}, handler.EnqueueRequestsFromMapFunc(chatOfApproval), changed).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.chatsOfPod)).
		Watches(&v1alpha1.ChatModelConfig{}, handler.EnqueueRequestsFromMapFunc(r.chatsWithOpenMessages)).
		Watches(&v1alpha1.ChatModelConfig{}, handler.EnqueueRequestsFromMapFunc(r.chatsMarkedBy), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers, RateLimiter: requeue.Limiter()}).
		Complete(r)
	if err = errors.Join(err, r.countPhases(mgr)); err != nil {
		return fmt.Errorf("setting up the chat controller: %w", err)
	}
	return nil
}

// Reconcile takes one chat as far as it can go. A conflict means that somebody else changed the chat since it was read:
// it is read anew and decided anew, so that an unrelated edit never costs an answer and a newer truth is never
// overwritten.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	for range maxConflicts {
		result, err := r.pass(ctx, req)
		if !apierrors.IsConflict(err) {
			return result, err
		}
		r.written.expectNewer(req.NamespacedName)
	}
	return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
}

func (r *Reconciler) pass(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.gather(ctx, req)
	if err != nil || seen == nil {
		return ctrl.Result{}, err
	}
	if seen.orphan {
		return ctrl.Result{}, r.removeOrphan(ctx, seen.facts.Chat)
	}
	settled := false
	defer func() {
		if !settled {
			r.givePlaceUp(seen.facts.Chat)
		}
	}()
	todo, err := r.decide(ctx, seen)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.act(ctx, seen, &todo); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, seen, &todo); err != nil {
		return ctrl.Result{}, err
	}
	r.settlePlace(seen.facts.Chat, &todo.Status)
	settled = true
	if todo.Status.History.Superseded != nil { // The messages that left the history can be put aside now.
		return ctrl.Result{RequeueAfter: time.Nanosecond}, nil
	}
	if todo.NeedsPod {
		seen.lookAgain = r.firstLook(ctx, req, &todo.Status)
	}
	return ctrl.Result{RequeueAfter: plan.Sooner(plan.Sooner(seen.lookAgain, todo.Again), plan.Deadline(&todo.Status, seen.facts.Now))}, nil
}

// advance decides from the facts. An error is a fault of Parley itself, which trying again does not mend.
func advance(s *seen) (plan.Plan, error) {
	todo, err := plan.Advance(s.facts)
	if err != nil {
		return todo, reconcile.TerminalError(err)
	}
	return todo, nil
}

// firstLook is when to look at an attempt that has just been given to a pod. The pod may go before the cache shows that the chat has
// it, and then its event wakes nobody; nor does a message that had the name of the result before.
func (r *Reconciler) firstLook(ctx context.Context, req ctrl.Request, st *v1alpha1.ChatStatus) time.Duration {
	if taken, err := r.message(ctx, r.Client, req.Namespace, attempts.Of("", st).ResultName(req.Name)); err == nil && taken != nil {
		return time.Nanosecond
	}
	return placement.MaxUnseen
}

// messageHandler wakes a message's chat, and the chat whose result the message is named like. When one is deleted,
// the chat's history has to be looked at, and it may be the result that the chat waits for.
func (r *Reconciler) messageHandler() handler.EventHandler {
	wake := handler.EnqueueRequestsFromMapFunc(chatOfMessage)
	return handler.Funcs{
		CreateFunc: wake.Create, UpdateFunc: wake.Update, GenericFunc: wake.Generic,
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if message, ok := e.Object.(*v1alpha1.ChatMessage); ok {
				r.deleted.put(message)
				if !index.IsReport(message) {
					r.chains.suspect(request(message.Namespace, message.Spec.ChatRef.Name).NamespacedName)
				}
			}
			wake.Delete(ctx, e, queue)
		},
	}
}

// chatOfMessage is the chat that the message names, and the one whose prompt has its name, which waits until it is gone.
func chatOfMessage(_ context.Context, o client.Object) []reconcile.Request {
	message, ok := o.(*v1alpha1.ChatMessage)
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
	approval, ok := o.(*v1alpha1.ToolApproval)
	if !ok {
		return nil
	}
	return []reconcile.Request{request(approval.Namespace, approval.Spec.ChatRef.Name)}
}

func (r *Reconciler) chatsOfPod(ctx context.Context, o client.Object) []reconcile.Request {
	return r.chatsBy(ctx, index.ChatsByPod, o)
}

// chatsMarkedBy are the chats, also those at rest, of which a condition may follow from the ChatModelConfig: whether it can give them
// advice, which advisor it lets them have, and whether another one answers than they name.
func (r *Reconciler) chatsMarkedBy(ctx context.Context, o client.Object) []reconcile.Request {
	var configs v1alpha1.ChatModelConfigList
	var chats v1alpha1.ChatList
	if !requeue.List(ctx, r.Client, &configs, client.InNamespace(o.GetNamespace())) ||
		!requeue.List(ctx, r.Client, &chats, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy) {
		return nil
	}
	var requests []reconcile.Request
	for i := range chats.Items {
		chat := &chats.Items[i]
		if !chat.Status.Archived && (marked(&chat.Status) || mayLackAdvice(&chat.Spec, configs.Items, o.GetName())) {
			requests = append(requests, request(chat.Namespace, chat.Name))
		}
	}
	return requests
}

// marked reports whether the chat says that a ChatModelConfig is not as it is named.
func marked(st *v1alpha1.ChatStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionAdvisorUnavailable) ||
		meta.IsStatusConditionTrue(st.Conditions, v1alpha1.ConditionModelConfigFallback)
}

// mayLackAdvice reports whether the chat has an advisor, and the ChatModelConfig of that name is the advisor's or the one that answers.
func mayLackAdvice(chat *v1alpha1.ChatSpec, configs []v1alpha1.ChatModelConfig, name string) bool {
	answers, _ := modelconfig.Resolve(configs, chat)
	advisor := modelconfig.AdvisorOf(chat, answers)
	return advisor != "" && (advisor == name || answers != nil && answers.Name == name)
}

// chatsBy are the chats of the object's namespace that the index knows under its name.
func (r *Reconciler) chatsBy(ctx context.Context, field string, o client.Object) []reconcile.Request {
	var chats v1alpha1.ChatList
	if !requeue.List(ctx, r.Client, &chats, client.InNamespace(o.GetNamespace()), client.MatchingFields{field: o.GetName()}) {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(chats.Items))
	for i := range chats.Items {
		requests = append(requests, request(chats.Items[i].Namespace, chats.Items[i].Name))
	}
	return requests
}

func (r *Reconciler) chatsWithOpenMessages(ctx context.Context, o client.Object) []reconcile.Request {
	var messages v1alpha1.ChatMessageList
	if !requeue.List(ctx, r.Client, &messages, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.UnsettledByChat: index.AnyChat}) {
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
