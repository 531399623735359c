// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatmessage reconciles ChatMessages. It writes the status of User messages, which follows from the Chat's and
// is off the path of a turn, and removes generated messages that belong to no chat or to no history.
package chatmessage

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/telemetry"
)

// Reconciler writes the status of User messages and removes leftovers.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache, before anything is removed.
	Live client.Reader
	// Workers is how many messages are reconciled at once.
	Workers int
	// ReportAfter is how long an attempt has to be under way before the message that it answers says so; 0:
	// DefaultReportAfter.
	ReportAfter time.Duration
	// Now returns the current time.
	Now func() time.Time
	// Metrics counts results that came too late; nil: no metrics.
	Metrics *telemetry.Manager

	gone    goneChats
	written writtenMessages
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("chatmessage").
		For(&v1beta1.ChatMessage{},
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, chatUIDChanged()),
				predicate.Not(r.listedAtRest()))).
		Watches(&v1beta1.ChatMessage{}, requeue.News(index.Unsettled, &handler.EnqueueRequestForObject{}),
			builder.WithPredicates(requeue.Listed(), predicate.NewPredicateFuncs(index.Unsettled))).
		Watches(&v1beta1.ChatMessage{}, handler.Funcs{CreateFunc: r.wakeFollowed}).
		Watches(&v1beta1.Chat{}, r.chatHandler()).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers, RateLimiter: requeue.Limiter(),
			NewQueue: requeue.NewFairQueue}).
		Complete(requeue.IgnoreGone(r))
	if err != nil {
		return fmt.Errorf("setting up the chatmessage controller: %w", err)
	}
	return nil
}

// Reconcile brings one message in line with its chat.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s, err := r.gather(ctx, req.NamespacedName)
	if err != nil || s == nil {
		return ctrl.Result{}, err
	}
	if s.isHeld() { // The end of that wakes the messages.
		return ctrl.Result{}, nil
	}
	if r.written.isBehind(s.message, r.Now()) {
		return ctrl.Result{RequeueAfter: requeue.Conflict}, nil
	}
	if verdict := judge(s); verdict != keep {
		return ctrl.Result{}, r.remove(ctx, s, verdict)
	}
	if wait := r.tooEarly(s); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	err = r.report(ctx, s)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: requeue.Conflict}, nil
	}
	return ctrl.Result{}, err
}

// DefaultReportAfter is how long an attempt has to be under way before the message that it answers says so: 5 s. Most
// are over by then, and the write is saved; until then, the chat alone says it.
const DefaultReportAfter = 5 * time.Second

// tooEarly is how long to wait before a message says that it is being answered.
func (r *Reconciler) tooEarly(s *scope) time.Duration {
	if s.chat == nil || s.message.Spec.Generation != nil {
		return 0
	}
	turn, generation := s.chat.Status.Turn, s.chat.Status.Generation
	if turn == nil || turn.Message != s.message.Name || turn.Result != "" || generation == nil {
		return 0
	}
	after := cmp.Or(r.ReportAfter, DefaultReportAfter)
	return min(after, after-r.Now().Sub(generation.StartedAt.Time)) // Another manager's clock may be ahead.
}

// listedAtRest passes messages that a watch lists first and that need nothing, as their chats are now. They are nearly
// all: to queue each, for a reconcile that finds that out, would cost more than to find it out. What changes their
// chats later wakes them.
func (r *Reconciler) listedAtRest() predicate.Predicate {
	no := func(event.UpdateEvent) bool { return false }
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.IsInInitialList && r.atRest(e.Object) },
		UpdateFunc: no, DeleteFunc: func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// atRest reports whether a reconcile of the message would do nothing.
func (r *Reconciler) atRest(o client.Object) bool {
	message, ok := o.(*v1beta1.ChatMessage)
	if !ok || index.Unsettled(message) || isNewNote(message) {
		return false
	}
	s, err := r.consider(context.Background(), message)
	return err == nil && atRest(s)
}

// chatUIDChanged passes the moment when a message says which chat took it up: that chat may be gone by then.
func chatUIDChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1beta1.ChatMessage)
		after, also := e.ObjectNew.(*v1beta1.ChatMessage)
		return ok && also && before.Status.ChatUID != after.Status.ChatUID
	}}
}
