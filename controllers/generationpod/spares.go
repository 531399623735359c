// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
)

// Spares keeps generation pods with room for chats where a namespace's default ChatClass asks for some
// (spec.spareGenerationPods), so that no chat waits for a pod to start. The Reconciler does not remove them.
type Spares struct {
	// Client reads from the cache.
	Client client.Client
	// Pool that creates the pods.
	Pool *Pool
	// Recorder reports on the class that the API server refuses pods.
	Recorder events.EventRecorder
}

// SetupWithManager registers the controller and its watches. A request names a namespace.
func (s *Spares) SetupWithManager(mgr ctrl.Manager) error {
	namespace := handler.EnqueueRequestsFromMapFunc(namespaceOf)
	edited := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).
		Named("sparegenerationpods").
		Watches(&v1beta1.ChatClass{}, namespace, edited).
		Watches(&v1beta1.ChatModelConfig{}, namespace, edited). // Their keys are part of what pods are built from.
		Watches(&corev1.Pod{}, namespace).
		WatchesRawSource(source.Func(s.enqueueFilled)).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(s))
}

// Reconcile creates a pod if a namespace has too few with room for chats. The pod's event brings the next one.
func (s *Spares) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	class, err := spareClass(ctx, s.Client, req.Name)
	if err != nil || class == nil {
		return ctrl.Result{}, err
	}
	again, err := s.Pool.keep(ctx, req.Name, int(class.Spec.SpareGenerationPods))
	if refused, ok := errors.AsType[*placement.RefusedError](err); ok {
		s.Recorder.Eventf(class, nil, corev1.EventTypeWarning, string(v1beta1.EventGenerationPodRejected),
			string(v1beta1.EventActionGenerate), "The API server refuses a spare generation pod: %s", refused.Words)
		return ctrl.Result{RequeueAfter: max(refused.Until.Sub(s.Pool.Now()), time.Millisecond)}, nil
	}
	return ctrl.Result{RequeueAfter: again}, err
}

// spareClass is the ChatClass that asks for spare pods in the namespace; nil if none does.
func spareClass(ctx context.Context, reader client.Reader, namespace string) (*v1beta1.ChatClass, error) {
	var classes v1beta1.ChatClassList
	if err := reader.List(ctx, &classes, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing ChatClasses: %w", err)
	}
	if class := chatclass.FirstDefault(classes.Items); class != nil && class.Spec.SpareGenerationPods > 0 {
		return class, nil
	}
	return nil, nil
}

// keep creates a pod in the namespace if fewer than the spare pods have room for chats. It returns when to look again;
// zero: an event tells.
func (p *Pool) keep(ctx context.Context, namespace string, spares int) (again time.Duration, err error) {
	_, err, _ = p.flights.Do(namespace, func() (any, error) {
		settings, room, err := p.room(ctx, namespace)
		if err != nil || room >= spares {
			return nil, err
		}
		pods, err := p.pods(ctx, namespace, settings.Hash())
		if again = p.replacesIn(pods); err == nil && again == 0 {
			_, err = p.create(ctx, settings, "")
		}
		return nil, err
	})
	return again, err
}

// replaceAfter is how long after its creation a pod is replaced at the earliest: a kubelet that rejects one, such as
// while its node shuts down, rejects the next one, too.
const replaceAfter = 10 * time.Second

// replacesIn is how long one of the pods that was just created, and cannot work, is not replaced yet.
func (p *Pool) replacesIn(pods []placement.Pod) (left time.Duration) {
	for _, pod := range pods {
		if !pod.Usable {
			left = max(left, pod.Created.Add(replaceAfter).Sub(p.Now()))
		}
	}
	return left
}

// room counts the namespace's pods with room for chats, and returns its settings.
func (p *Pool) room(ctx context.Context, namespace string) (podspec.Settings, int, error) {
	settings, err := p.readSettings(ctx, namespace)
	if err != nil {
		return settings, 0, err
	}
	want := placement.Want{Template: settings.Hash(), Capacity: p.Settings.Capacity}
	pods, err := p.pods(ctx, namespace, want.Template)
	return settings, p.Ledger.Room(namespace, pods, want), err
}

// isSpare reports whether the namespace needs the pod, which has no work, as a spare one.
func (p *Pool) isSpare(ctx context.Context, pod *corev1.Pod) (bool, error) {
	class, err := spareClass(ctx, p.Client, pod.Namespace)
	if err != nil || class == nil {
		return false, err
	}
	settings, room, err := p.room(ctx, pod.Namespace)
	template := settings.Hash()
	usable := podstate.Placement(pod, p.Now(), podstate.Terms{Start: p.Start, Template: template}).Usable &&
		pod.Labels[podspec.LabelTemplate] == template
	return usable && room <= int(class.Spec.SpareGenerationPods), err
}

// enqueueFilled enqueues a namespace in which a chat takes the last room of a pod: no event reports that.
func (s *Spares) enqueueFilled(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	s.Pool.filled.Store(new(func(namespace string) {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	}))
	return nil
}
