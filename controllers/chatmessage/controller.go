// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatmessage reconciles ChatMessages. It writes the status of User messages, which follows from the Chat's and
// is off the path of a turn, and removes generated messages that belong to no chat or to no history.
package chatmessage

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/index"
)

// Reconciler writes the status of User messages and removes leftovers.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache, before anything is removed.
	Live client.Reader
	// Workers is how many messages are reconciled at once.
	Workers int
	// Now tells the time.
	Now func() time.Time
}

// SetupWithManager registers the reconciler and what wakes it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("chatmessage").
		For(&v1alpha1.ChatMessage{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Chat{}, handler.EnqueueRequestsFromMapFunc(r.messagesOfChat)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the chatmessage controller: %w", err)
	}
	return nil
}

// Reconcile brings one message in line with its chat.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.gather(ctx, req.NamespacedName)
	if err != nil || seen == nil {
		return ctrl.Result{}, err
	}
	if verdict := judge(seen); verdict != keep {
		return ctrl.Result{}, r.remove(ctx, seen, verdict)
	}
	if wait := r.tooEarly(seen); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	err = r.report(ctx, seen)
	if apierrors.IsConflict(err) {
		// Somebody changed the message, or the cache lags behind this reconciler's own write.
		return ctrl.Result{RequeueAfter: 20 * time.Millisecond}, nil
	}
	return ctrl.Result{}, err
}

// reportAfter is how long a turn has to be under way before its message says so: 1 s. Until then the write would only
// compete with the model call that it is about, and the turn may be over by then.
const reportAfter = time.Second

// tooEarly is how long to wait before a message says that it is being answered.
func (r *Reconciler) tooEarly(s *seen) time.Duration {
	if s.chat == nil || s.message.Spec.Generation != nil {
		return 0
	}
	turn, generation := s.chat.Status.Turn, s.chat.Status.Generation
	if turn == nil || turn.Message != s.message.Name || turn.Result != "" || generation == nil {
		return 0
	}
	return reportAfter - r.Now().Sub(generation.StartedAt.Time)
}

// messagesOfChat finds the messages whose status may follow from a change of the chat.
func (r *Reconciler) messagesOfChat(ctx context.Context, o client.Object) []reconcile.Request {
	fields := []string{index.UnsettledByChat, index.ReportsByChat}
	if !o.GetDeletionTimestamp().IsZero() || r.gone(ctx, o) {
		fields = []string{index.MessagesByChat}
	}
	var requests []reconcile.Request
	if chat, ok := o.(*v1alpha1.Chat); ok && chat.Status.Turn != nil {
		key := types.NamespacedName{Namespace: chat.Namespace, Name: chat.Status.Turn.Message}
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	for _, field := range fields {
		var messages v1alpha1.ChatMessageList
		if err := r.Client.List(ctx, &messages, client.InNamespace(o.GetNamespace()), client.MatchingFields{field: o.GetName()}); err != nil {
			return nil
		}
		for i := range messages.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&messages.Items[i])})
		}
	}
	return requests
}

func (r *Reconciler) gone(ctx context.Context, o client.Object) bool {
	var chat v1alpha1.Chat
	return apierrors.IsNotFound(r.Client.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}, &chat))
}
