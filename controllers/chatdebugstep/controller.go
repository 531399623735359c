// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatdebugstep deletes the recordings of model calls when they expire or their chat is archived, and ends
// those whose pod is gone. It reads only the metadata of a recording, so that no prompt reaches the manager.
package chatdebugstep

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
)

// fieldOwner owns the fields that the manager applies to a recording.
const fieldOwner = "parley-manager"

// Reconciler deletes recordings, and ends those whose pod cannot.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache.
	Live client.Reader
	// Now returns the current time.
	Now func() time.Time
}

// SetupWithManager registers the controller and its watches.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	ofPod := handler.EnqueueRequestsFromMapFunc(r.recordings(isOfPod))
	ofChat := handler.EnqueueRequestsFromMapFunc(r.recordings(isOfChat))
	return ctrl.NewControllerManagedBy(mgr).
		Named("chatdebugstep").
		For(&v1beta1.ChatDebugStep{}, builder.OnlyMetadata).
		Watches(&corev1.Pod{}, ofPod, builder.WithPredicates(r.lostPods())).
		Watches(&v1beta1.Chat{}, ofChat, builder.WithPredicates(archivedChats())).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(r))
}

// lostPods selects the deletions of pods, and the updates after which a pod makes no recordings.
func (r *Reconciler) lostPods() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			pod, ok := e.ObjectNew.(*corev1.Pod)
			return ok && r.isLost(pod)
		},
	}
}

// isLost reports whether a pod will end no attempt. It has made a recording, so the time of its start does not matter.
func (r *Reconciler) isLost(pod *corev1.Pod) bool {
	terms := podstate.Terms{Start: math.MaxInt64, Template: pod.Labels[podspec.LabelTemplate]}
	return podstate.Of(pod, r.Now(), terms).Lost
}

// archivedChats selects the updates that archive a chat.
func archivedChats() predicate.Predicate {
	archived := func(o client.Object) bool {
		chat, ok := o.(*v1beta1.Chat)
		return ok && chat.Status.Archived
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return archived(e.ObjectNew) && !archived(e.ObjectOld) },
	}
}

// recordings requeues the recordings that match what changed.
func (r *Reconciler) recordings(match func(changed, recording client.Object) bool) handler.MapFunc {
	steps := &metav1.PartialObjectMetadataList{}
	steps.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatDebugStepList"))
	return requeue.Siblings(r.Client, steps, match)
}

// isOfPod reports whether the pod makes the recording.
func isOfPod(pod, recording client.Object) bool {
	p := progressOf(recording)
	return p != nil && p.pod == pod.GetName()
}

func isOfChat(chat, recording client.Object) bool {
	owners := recording.GetOwnerReferences()
	return len(owners) > 0 && owners[0].UID == chat.GetUID()
}

// Reconcile deletes one recording if it has expired, or ends it if its pod cannot.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	step := &metav1.PartialObjectMetadata{}
	step.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatDebugStep"))
	if err := r.Client.Get(ctx, req.NamespacedName, step); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !step.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	f, err := r.gather(ctx, step)
	if err != nil {
		return ctrl.Result{}, err
	}
	what, wait := f.judge()
	switch what {
	case remove:
		return ctrl.Result{}, r.remove(ctx, step)
	case interrupt:
		return ctrl.Result{}, r.interrupt(ctx, step, f)
	}
	return ctrl.Result{RequeueAfter: wait}, nil
}

func (r *Reconciler) gather(ctx context.Context, step *metav1.PartialObjectMetadata) (*facts, error) {
	f := &facts{expires: expiresAt(step), progress: progressOf(step), now: r.Now()}
	chat, err := r.chat(ctx, step)
	if err != nil {
		return nil, err
	}
	f.archived = chat != nil && chat.Status.Archived
	if f.progress == nil {
		return f, nil
	}
	version, _, ok := v1beta1.ParseDebugHistory(step.Annotations[v1beta1.AnnotationHistory])
	f.movedOn = chat == nil || chat.Status.Generation == nil || chat.Status.Generation.Pod != f.progress.pod ||
		int64(chat.Status.Generation.Attempt) != f.progress.attempt || !ok || version != chat.Status.History.Version
	f.podGone, err = r.isPodGone(ctx, types.NamespacedName{Namespace: step.Namespace, Name: f.progress.pod})
	return f, err
}

// chat reads the chat of a recording; nil if it does not exist.
func (r *Reconciler) chat(ctx context.Context, step *metav1.PartialObjectMetadata) (*v1beta1.Chat, error) {
	if len(step.OwnerReferences) == 0 {
		return nil, nil // It is of no chat.
	}
	owner, chat := &step.OwnerReferences[0], &v1beta1.Chat{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: step.Namespace, Name: owner.Name}, chat)
	if apierrors.IsNotFound(err) || err == nil && chat.UID != owner.UID {
		return nil, nil // It is gone.
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", owner.Name, err)
	}
	return chat, nil
}

// isPodGone reports whether a generation pod will not write again. A pod that is missing in the cache is read from the
// API server.
func (r *Reconciler) isPodGone(ctx context.Context, name types.NamespacedName) (bool, error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		pod := &corev1.Pod{}
		switch err := reader.Get(ctx, name, pod); {
		case err == nil:
			return r.isLost(pod), nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("reading pod %s: %w", name, err)
		}
	}
	return true, nil
}

func (r *Reconciler) remove(ctx context.Context, step *metav1.PartialObjectMetadata) error {
	// A person may have extended its time since: the event of that change requeues it.
	err := r.Client.Delete(ctx, step, client.Preconditions{UID: &step.UID, ResourceVersion: &step.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting ChatDebugStep %s/%s: %w", step.Namespace, step.Name, err)
	}
	return nil
}

// interrupt records that the attempt was interrupted. It applies these fields and reads none.
func (r *Reconciler) interrupt(ctx context.Context, step *metav1.PartialObjectMetadata, f *facts) error {
	ended := metav1.NewMicroTime(f.now)
	patch, err := json.Marshal(map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "ChatDebugStep",
		"metadata": map[string]any{
			"name": step.Name, "namespace": step.Namespace, "resourceVersion": step.ResourceVersion,
			"annotations": map[string]string{v1beta1.AnnotationInProgress: ""},
		},
		"state": v1beta1.DebugInterrupted, "finishedAt": ended,
		"attempts": []any{map[string]any{"number": f.progress.attempt, "state": v1beta1.DebugInterrupted,
			"finishedAt": ended}},
	})
	if err != nil {
		return fmt.Errorf("writing the end of ChatDebugStep %s: %w", step.Name, err)
	}
	err = r.Client.Patch(ctx, step, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner(fieldOwner),
		client.ForceOwnership)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("ending ChatDebugStep %s/%s: %w", step.Namespace, step.Name, err)
	}
	return nil
}

// expiresAt is when the recording is deleted.
func expiresAt(step *metav1.PartialObjectMetadata) time.Time {
	if at, err := time.Parse(time.RFC3339, step.Annotations[v1beta1.AnnotationExpiresAt]); err == nil {
		return at
	}
	return step.CreationTimestamp.Add(v1beta1.DefaultDebugExpiry)
}
