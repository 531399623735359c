// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generationpod owns the generation pods: a Pool assigns them to attempts and creates them, the Reconciler
// removes pods without work after the idle time, or at once if they were built from old settings, and Access keeps
// their ServiceAccount, Role and NetworkPolicy.
package generationpod

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
)

// DefaultIdle is how long a generation pod without work is kept warm.
const DefaultIdle = 10 * time.Minute

// Reconciler removes generation pods.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Pool that assigns the pods to attempts.
	Pool *Pool
	// Idle is how long a pod without work is kept.
	Idle time.Duration
	// Now returns the current time.
	Now func() time.Time

	mu        sync.Mutex
	idleSince map[client.ObjectKey]time.Time
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("generationpod").
		For(&corev1.Pod{}).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(r))
}

// Reconcile removes one generation pod if it is idle, and otherwise looks again when it may be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.Client.Get(ctx, req.NamespacedName, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			r.Pool.Ledger.Forget(req.Namespace, req.Name)
			r.resetIdle(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if pod.Labels[podspec.LabelComponent] != podspec.ComponentGeneration || !pod.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	r.Pool.Ledger.Seen(pod.Namespace, pod.Name)
	wait, err := r.idleFor(ctx, &pod)
	if err != nil || wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, err
	}
	return r.remove(ctx, &pod)
}

// idleFor is how long to wait until the pod may be removed.
func (r *Reconciler) idleFor(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
	key, now := client.ObjectKeyFromObject(pod), r.Now()
	settings, err := r.Pool.readSettings(ctx, pod.Namespace)
	if err != nil {
		return 0, err
	}
	template := settings.Hash()
	state := podstate.Of(pod, now, podstate.Terms{Start: r.Pool.Start, Template: template})
	keep := r.Idle
	if state.Lost || pod.Labels[podspec.LabelTemplate] != template { // It gets no further work.
		keep = 0
	}
	var chats v1beta1.ChatList
	if err := r.Client.List(ctx, &chats, client.InNamespace(pod.Namespace),
		client.MatchingFields{index.ChatsByPod: pod.Name}); err != nil {
		return 0, fmt.Errorf("listing the chats of pod %s: %w", pod.Name, err)
	}
	if len(chats.Items) > 0 || r.Pool.Ledger.Load(pod.Name) > 0 {
		r.resetIdle(key)
		return max(untilLost(state, keep), time.Second), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idleSince == nil {
		r.idleSince = map[client.ObjectKey]time.Time{}
	}
	since, ok := r.idleSince[key]
	if !ok {
		since = now
		r.idleSince[key] = now
	}
	wait := untilLost(state, since.Add(keep).Sub(now))
	if state.Lost { // Until then, it holds its replacement back.
		wait = max(wait, pod.CreationTimestamp.Add(replaceAfter).Sub(now))
	}
	return max(0, wait), nil
}

// untilLost limits a wait to the time until the pod is lost: then its chats leave it, and a spare one is replaced.
func untilLost(state podstate.State, wait time.Duration) time.Duration {
	if state.LostIn > 0 {
		return min(wait, state.LostIn)
	}
	return wait
}

func (r *Reconciler) resetIdle(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.idleSince, key)
}

// remove deletes the pod, unless a chat was just assigned to it.
func (r *Reconciler) remove(ctx context.Context, pod *corev1.Pod) (ctrl.Result, error) {
	if spare, err := r.Pool.isSpare(ctx, pod); err != nil || spare {
		return ctrl.Result{RequeueAfter: r.Idle}, err
	}
	if !r.Pool.Ledger.Drain(pod.Name) {
		return ctrl.Result{RequeueAfter: r.Idle}, nil
	}
	log.FromContext(ctx).Info("removing a generation pod without work", "pod", client.ObjectKeyFromObject(pod))
	uid := pod.UID
	if err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("removing pod %s: %w", pod.Name, err)
	}
	return ctrl.Result{}, nil
}
