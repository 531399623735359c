// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat reconciles Chats: it gathers facts, lets package turn decide, acts, and reports in one status write. It is
// the only writer of Chat.status, and each write is a compare-and-swap on the Chat's resourceVersion.
package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"parley.dev/parley/internal/index"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/turn"
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
	// GatewayNamespace is the namespace of the gateways that may reach relays.
	GatewayNamespace string
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

	written written
	access  access
	chains  chains
	places  places
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
		Watches(&v1alpha1.ChatModelConfig{}, handler.EnqueueRequestsFromMapFunc(r.chatsAdvisedBy), changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
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
	plan, err := turn.Advance(seen.facts)
	if err != nil {
		return ctrl.Result{}, reconcile.TerminalError(err)
	}
	if err := r.act(ctx, seen, &plan); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.report(ctx, seen, &plan); err != nil {
		return ctrl.Result{}, err
	}
	r.settlePlace(seen.facts.Chat, &plan.Status)
	settled = true
	if plan.Status.History.Superseded != nil { // The messages that left the history can be put aside now.
		return ctrl.Result{RequeueAfter: time.Nanosecond}, nil
	}
	if plan.NeedsPod { // The pod may go before the cache shows that the chat has it, and then its event wakes nobody.
		seen.lookAgain = placement.MaxUnseen
	}
	return ctrl.Result{RequeueAfter: sooner(sooner(seen.lookAgain, plan.Again), deadline(&plan.Status, seen.facts.Now))}, nil
}

// deadline is how long until the status has to change because of the time alone; zero if it need not.
func deadline(st *v1alpha1.ChatStatus, now time.Time) time.Duration {
	if st.RequiresAction != nil {
		return max(st.RequiresAction.Deadline.Sub(now), time.Nanosecond)
	}
	if st.Retry != nil && st.Retry.At.After(now) { // After that something else holds it, which wakes the chat itself.
		return st.Retry.At.Sub(now)
	}
	return sooner(interruptionEnds(st, now), waitEnds(st, now))
}

// interruptionEnds is how long an attempt that was told to stop has to hand over what it has; zero if there is none.
func interruptionEnds(st *v1alpha1.ChatStatus, now time.Time) time.Duration {
	if st.Phase != v1alpha1.ChatInterrupting || st.Generation == nil || st.Generation.InterruptedAt == nil {
		return 0
	}
	return max(turn.InterruptPatience-now.Sub(st.Generation.InterruptedAt.Time), time.Nanosecond)
}

// sooner is the shorter of two waits; zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// messageHandler wakes a message's chat. When one is deleted, the chat's history has to be looked at.
func (r *Reconciler) messageHandler() handler.EventHandler {
	wake := handler.EnqueueRequestsFromMapFunc(chatOfMessage)
	return handler.Funcs{
		CreateFunc: wake.Create, UpdateFunc: wake.Update, GenericFunc: wake.Generic,
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if message, ok := e.Object.(*v1alpha1.ChatMessage); ok && !index.IsReport(message) {
				r.chains.suspect(request(message.Namespace, message.Spec.ChatRef.Name).NamespacedName)
			}
			wake.Delete(ctx, e, queue)
		},
	}
}

func chatOfMessage(_ context.Context, o client.Object) []reconcile.Request {
	message, ok := o.(*v1alpha1.ChatMessage)
	if !ok {
		return nil
	}
	return []reconcile.Request{request(message.Namespace, message.Spec.ChatRef.Name)}
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

// chatsAdvisedBy are the chats that say whether the ChatModelConfig can give them advice.
func (r *Reconciler) chatsAdvisedBy(ctx context.Context, o client.Object) []reconcile.Request {
	return r.chatsBy(ctx, index.ChatsByAdvisor, o)
}

// chatsBy are the chats of the object's namespace that the index knows under its name.
func (r *Reconciler) chatsBy(ctx context.Context, field string, o client.Object) []reconcile.Request {
	var chats v1alpha1.ChatList
	if err := r.Client.List(ctx, &chats, client.InNamespace(o.GetNamespace()), client.MatchingFields{field: o.GetName()}); err != nil {
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
	if err := r.Client.List(ctx, &messages, client.InNamespace(o.GetNamespace()), client.MatchingFields{index.UnsettledByChat: index.AnyChat}); err != nil {
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
