// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chat reconciles Chats: it gathers facts, lets internal/chat/plan decide, acts, and reports in one status
// write. It is the only writer of Chat.status, and each write is a compare-and-swap on the Chat's resourceVersion.
package chat

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/internal/pods/modellimits"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// maxConflicts is how many resourceVersion conflicts one reconcile retries before it requeues.
const maxConflicts = 5

// Options of the controller.
type Options struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache, where a decision must not rest on an old view.
	Live client.Reader
	// Informers fill the cache that Client reads from.
	Informers ctrlcache.Informers
	// Recorder of Events.
	Recorder events.EventRecorder
	// Pods gives attempts their generation pods.
	Pods Pods
	// Gate bounds how many chats generate at once.
	Gate *capacity.Gate
	// Calls bounds the calls of each ChatModelConfig.
	Calls *modellimits.Gate
	// LoadLimits tells the gate what all quotas say. It is called before the first chat passes.
	LoadLimits func(context.Context) error
	// Elsewhere reads the chats that other managers drive, as far as they are at work; nil: there are none. The gate
	// counts them.
	Elsewhere ctrlcache.Cache
	// Archive is where chats are archived before their retention deletes them; nil: nowhere.
	Archive *archive.Store
	// Workers is how many chats are reconciled at once.
	Workers int
	// Now returns the current time.
	Now func() time.Time
	// Metrics and Tracer say how turns go; nil disables them.
	Metrics *telemetry.Manager
	Tracer  *tracing.Tracer
}

// Reconciler drives Chats. Each stroke of a reconcile has a type of its own, which holds what that stroke may use: what
// gathers has no client that writes.
type Reconciler struct {
	options  Options
	memory   *memory
	slots    *slots
	models   *modelCalls
	gatherer *gatherer
	servers  *servers
	actuator *actuator
	sharer   *sharer
	archiver *archiver
	forker   *forker
	observer *observer
}

// New returns the controller.
func New(o Options) *Reconciler {
	remembered := &memory{}
	return &Reconciler{
		options:  o,
		memory:   remembered,
		slots:    &slots{gate: o.Gate, chats: o.Client, loadLimits: o.LoadLimits, elsewhere: o.Elsewhere},
		models:   &modelCalls{gate: o.Calls, client: o.Client, now: o.Now},
		gatherer: newGatherer(&o, remembered),
		servers:  &servers{live: o.Live, mapper: o.Client.RESTMapper()},
		actuator: &actuator{client: o.Client, live: o.Live, metrics: o.Metrics, now: o.Now},
		sharer:   &sharer{client: o.Client, granted: &remembered.shares, now: o.Now},
		archiver: &archiver{store: o.Archive, live: o.Live, metrics: o.Metrics, now: o.Now,
			running: limit.New(archivesAtOnce), failures: &remembered.archives, begun: &remembered.begun},
		forker:   &forker{client: o.Client, live: o.Live, files: o.Archive, running: limit.New(forksAtOnce), now: o.Now},
		observer: &observer{recorder: o.Recorder, metrics: o.Metrics, tracer: o.Tracer, waits: &remembered.waits, now: o.Now},
	}
}

// Reconcile takes one chat as far as it can go. A conflict means that somebody else changed the chat since it was read:
// it is read and decided again, so that an unrelated edit never costs an answer and a newer truth is never
// overwritten.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	for range maxConflicts {
		result, err := r.reconcile(ctx, req.NamespacedName)
		if !apierrors.IsConflict(err) {
			return result, err
		}
		r.memory.written.invalidate(req.NamespacedName)
	}
	return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
}

func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	s, err := r.gatherer.gather(ctx, key)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case s == nil:
		return r.forget(ctx, key)
	case s.facts.Chat.IsRestoring():
		todo := plan.Restoring(s.facts)
		return ctrl.Result{}, r.report(ctx, s, &todo)
	case s.facts.Chat.IsForking():
		return r.fork(ctx, s)
	case s.orphan:
		return ctrl.Result{}, r.actuator.removeOrphan(ctx, s.facts.Chat)
	}
	return r.advance(ctx, s)
}

// advance takes the chat one status write further. A chat whose reconcile fails keeps no slot from others.
func (r *Reconciler) advance(ctx context.Context, s *scope) (ctrl.Result, error) {
	settled := false
	defer func() {
		if !settled {
			r.slots.giveUp(s.facts.Chat)
			r.models.giveUp(s.facts.Chat)
		}
	}()
	access := r.sharer.share(ctx, s.stored()) // First: that access ends in time does not depend on what else works.
	if s.podGone {
		r.options.Pods.Forget(podOf(s.facts.Chat))
	}
	if err := r.models.take(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	todo, err := r.decide(ctx, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.actuator.act(ctx, s, &todo); err != nil {
		return ctrl.Result{}, err
	}
	access.record(&todo, r.options.Now())
	if todo.DiscardsArchive {
		s.lookAgain = plan.Sooner(s.lookAgain, r.archiver.discardStale(ctx, s.facts.Chat))
	}
	if err := r.report(ctx, s, &todo); err != nil {
		return ctrl.Result{}, err
	}
	r.observer.observeWait(s.facts.Chat, &todo)
	r.slots.settle(s.facts.Chat, &todo.Status)
	r.models.settle(s, &todo.Status)
	settled = true
	if todo.Expires {
		return r.expire(ctx, s)
	}
	return ctrl.Result{RequeueAfter: r.requeueAfter(ctx, s, &todo)}, nil
}

// forget drops what this process remembers of a chat that is gone, and tells those who have decided about its calls.
func (r *Reconciler) forget(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	r.options.Pods.Book(key, "")
	r.slots.leave(key)
	r.models.leave(key)
	unshared := r.sharer.forget(ctx, key)
	gone, err := r.gatherer.isGone(ctx, key)
	if err != nil || !gone {
		return ctrl.Result{}, errors.Join(unshared, err)
	}
	r.memory.forget(key)
	return ctrl.Result{}, errors.Join(unshared, r.actuator.refuseApprovals(ctx, key),
		r.archiver.discardUnfinished(ctx, key))
}

// requeueAfter is when time alone may change something; zero: never.
func (r *Reconciler) requeueAfter(ctx context.Context, s *scope, todo *plan.Plan) time.Duration {
	// The messages that left the history can be put aside now, or new ones begin since they are; and what was decided
	// about sub-chats can be done.
	if in := &todo.Status.Internal; in.Superseded != nil || todo.PutAside || in.AgentsOf != "" {
		return time.Nanosecond
	}
	look := s.lookAgain
	if todo.Begins {
		look = r.firstLook(ctx, s, todo)
	}
	return plan.Sooner(plan.Sooner(look, todo.Again), plan.Deadline(&todo.Status, s.facts.Now))
}

// firstLook is when to look at an attempt that has just been given to a pod. The pod may go before the cache shows that
// the chat has it, and then its event enqueues nothing; nor does a message that had the name of the result before.
func (r *Reconciler) firstLook(ctx context.Context, s *scope, todo *plan.Plan) time.Duration {
	chat := s.facts.Chat
	name := attempts.Of("", &todo.Status).ResultName(chat.Name)
	if taken, err := readMessage(ctx, r.options.Client, chat.Namespace, name); err == nil && taken != nil {
		return time.Nanosecond
	}
	return placement.MaxUnseen
}
