// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat reconciles Chats: it gathers facts, lets package plan decide, acts, and reports in one status write. It
// is the only writer of Chat.status, and each write is a compare-and-swap on the Chat's resourceVersion.
package chat

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// maxConflicts is how many resourceVersion conflicts one reconcile retries before it requeues.
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
	// EnsureAccess sees to it that a namespace has what its generation pods run with.
	// It is called before a pod is created.
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
	slots    slots
}

// Reconcile takes one chat as far as it can go. A conflict means that somebody else changed the chat since it was read:
// it is read anew and decided anew, so that an unrelated edit never costs an answer and a newer truth is never
// overwritten.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	for range maxConflicts {
		result, err := r.reconcile(ctx, req)
		if !apierrors.IsConflict(err) {
			return result, err
		}
		r.written.invalidate(req.NamespacedName)
	}
	return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if err := r.primeGate(ctx); err != nil {
		return ctrl.Result{}, err
	}
	s, err := r.gather(ctx, req)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case s == nil:
		return ctrl.Result{}, r.forget(ctx, req.NamespacedName)
	case s.orphan:
		return ctrl.Result{}, r.removeOrphan(ctx, s.facts.Chat)
	}
	if s.podGone {
		r.Ledger.Forget(req.Namespace, s.facts.Chat.Status.Generation.Pod)
	}
	settled := false
	defer func() {
		if !settled {
			r.giveSlotUp(s.facts.Chat)
		}
	}()
	todo, err := r.carryOut(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.settleSlot(s.facts.Chat, &todo.Status)
	settled = true
	return ctrl.Result{RequeueAfter: r.requeueAfter(ctx, s, todo)}, nil
}

// carryOut decides, and does what was decided.
func (r *Reconciler) carryOut(ctx context.Context, s *scope) (*plan.Plan, error) {
	todo, err := r.decide(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := r.act(ctx, s, &todo); err != nil {
		return nil, err
	}
	return &todo, r.report(ctx, s, &todo)
}

// forget drops what this process remembers of a chat that is gone, and tells those who have decided about its calls.
func (r *Reconciler) forget(ctx context.Context, key types.NamespacedName) error {
	r.Ledger.Book(key.String(), "")
	r.Gate.Leave(key)
	var chat v1alpha1.Chat
	if err := r.Client.Get(ctx, key, &chat); !apierrors.IsNotFound(err) {
		return client.IgnoreNotFound(err) // It is being deleted.
	}
	r.written.forget(key)
	r.chains.forget(key)
	r.deleted.forget(key)
	return r.refuseApprovals(ctx, key)
}

// requeueAfter is when time alone may change something; zero: never.
func (r *Reconciler) requeueAfter(ctx context.Context, s *scope, todo *plan.Plan) time.Duration {
	if todo.Status.History.Superseded != nil { // The messages that left the history can be put aside now.
		return time.Nanosecond
	}
	look := s.lookAgain
	if todo.Begins {
		look = r.firstLook(ctx, s, &todo.Status)
	}
	return plan.Sooner(plan.Sooner(look, todo.Again), plan.Deadline(&todo.Status, s.facts.Now))
}

// firstLook is when to look at an attempt that has just been given to a pod. The pod may go before the cache shows that
// the chat has it, and then its event wakes nobody; nor does a message that had the name of the result before.
func (r *Reconciler) firstLook(ctx context.Context, s *scope, st *v1alpha1.ChatStatus) time.Duration {
	chat := s.facts.Chat
	if taken, err := r.message(ctx, r.Client, chat.Namespace, attempts.Of("", st).ResultName(chat.Name)); err == nil &&
		taken != nil {
		return time.Nanosecond
	}
	return placement.MaxUnseen
}
