// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatdebugstep deletes the recordings of model calls when they expire or their chat is archived, and ends
// those whose pod is gone. Of a recording it reads the metadata alone, so that no prompt comes near the manager.
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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
)

// fieldOwner owns what the operator says of a recording.
const fieldOwner = "parley-manager"

// Reconciler deletes recordings, and ends those that nobody else will.
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
	return ctrl.NewControllerManagedBy(mgr).
		Named("chatdebugstep").
		For(&v1alpha1.ChatDebugStep{}, builder.OnlyMetadata).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.recordings(isOfPod)), builder.WithPredicates(r.lostPods())).
		Watches(&v1alpha1.Chat{}, handler.EnqueueRequestsFromMapFunc(r.recordings(isOfChat)), builder.WithPredicates(archivedChats())).
		WithOptions(controller.Options{RateLimiter: requeue.Limiter()}).
		Complete(requeue.IgnoreGone(r))
}

// lostPods lets through that a pod has gone, or can do nothing any more.
func (r *Reconciler) lostPods() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			pod, ok := e.ObjectNew.(*corev1.Pod)
			return ok && r.lost(pod)
		},
	}
}

// lost reports whether a pod will end no attempt any more. It has made a recording,
// so how long it takes to start does not matter.
func (r *Reconciler) lost(pod *corev1.Pod) bool {
	return podstate.Of(pod, r.Now(), podstate.Terms{Start: math.MaxInt64, Template: pod.Labels[podspec.LabelTemplate]}).
		Lost
}

// archivedChats lets through that a chat was archived.
func archivedChats() predicate.Predicate {
	archived := func(o client.Object) bool {
		chat, ok := o.(*v1alpha1.Chat)
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
	steps.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ChatDebugStepList"))
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

// Reconcile deletes one recording if its time is up, ends it if nobody else will,
// and otherwise comes back when it is time to.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	step := &metav1.PartialObjectMetadata{}
	step.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ChatDebugStep"))
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
	f.movedOn = chat == nil || chat.Status.Generation == nil || chat.Status.Generation.Pod != f.progress.pod ||
		int64(chat.Status.Generation.Attempt) != f.progress.attempt || history(step) != chat.Status.History.Version
	f.podGone, err = r.podGone(ctx, types.NamespacedName{Namespace: step.Namespace, Name: f.progress.pod})
	return f, err
}

// chat is the one that a recording is of; nil if it is gone.
func (r *Reconciler) chat(ctx context.Context, step *metav1.PartialObjectMetadata) (*v1alpha1.Chat, error) {
	if len(step.OwnerReferences) == 0 {
		return nil, nil // It is of no chat.
	}
	owner, chat := &step.OwnerReferences[0], &v1alpha1.Chat{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: step.Namespace, Name: owner.Name}, chat)
	if apierrors.IsNotFound(err) || err == nil && chat.UID != owner.UID {
		return nil, nil // It is gone.
	}
	if err != nil {
		return nil, fmt.Errorf("reading chat %s: %w", owner.Name, err)
	}
	return chat, nil
}

// podGone reports whether a generation pod will write nothing any more.
// That there is none is not believed of the cache alone.
func (r *Reconciler) podGone(ctx context.Context, name types.NamespacedName) (bool, error) {
	for _, reader := range []client.Reader{r.Client, r.Live} {
		pod := &corev1.Pod{}
		switch err := reader.Get(ctx, name, pod); {
		case err == nil:
			return r.lost(pod), nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("reading pod %s: %w", name, err)
		}
	}
	return true, nil
}

func (r *Reconciler) remove(ctx context.Context, step *metav1.PartialObjectMetadata) error {
	// A person may have given it more time meanwhile: then the event of that brings it back.
	err := r.Client.Delete(ctx, step, client.Preconditions{UID: &step.UID, ResourceVersion: &step.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting ChatDebugStep %s/%s: %w", step.Namespace, step.Name, err)
	}
	return nil
}

// interrupt says of a recording that its attempt was interrupted. It applies these fields alone and reads none.
func (r *Reconciler) interrupt(ctx context.Context, step *metav1.PartialObjectMetadata, f *facts) error {
	ended := metav1.NewMicroTime(f.now)
	patch, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "ChatDebugStep",
		"metadata": map[string]any{
			"name": step.Name, "namespace": step.Namespace, "resourceVersion": step.ResourceVersion,
			"annotations": map[string]string{v1alpha1.AnnotationInProgress: ""},
		},
		"state": v1alpha1.DebugInterrupted, "finishedAt": ended,
		"attempts": []any{map[string]any{"number": f.progress.attempt, "state": v1alpha1.DebugInterrupted,
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

// history is the version of the history that a recording was made for; negative if it does not say.
func history(step *metav1.PartialObjectMetadata) int64 {
	version, _, ok := v1alpha1.ParseDebugHistory(step.Annotations[v1alpha1.AnnotationHistory])
	if !ok {
		return -1
	}
	return version
}

// expiresAt is when the recording goes.
func expiresAt(step *metav1.PartialObjectMetadata) time.Time {
	if at, err := time.Parse(time.RFC3339, step.Annotations[v1alpha1.AnnotationExpiresAt]); err == nil {
		return at
	}
	return step.CreationTimestamp.Add(v1alpha1.DefaultDebugExpiry)
}
