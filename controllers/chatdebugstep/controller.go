// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatdebugstep deletes the recordings of model calls when they expire. Of a recording it reads the metadata alone, so
// that no prompt comes near the manager.
package chatdebugstep

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// Reconciler deletes expired recordings.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Now tells the time.
	Now func() time.Time
}

// SetupWithManager registers the reconciler and what wakes it.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("chatdebugstep").For(&v1alpha1.ChatDebugStep{}, builder.OnlyMetadata).Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the chatdebugstep controller: %w", err)
	}
	return nil
}

// Reconcile deletes one recording if its time is up, and else comes back when it is.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	step := &metav1.PartialObjectMetadata{}
	step.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ChatDebugStep"))
	if err := r.Client.Get(ctx, req.NamespacedName, step); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !step.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := expiresAt(step).Sub(r.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	// A person may have given it more time meanwhile: then the event of that brings it back.
	err := r.Client.Delete(ctx, step, client.Preconditions{UID: &step.UID, ResourceVersion: &step.ResourceVersion})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return ctrl.Result{}, fmt.Errorf("deleting the expired ChatDebugStep %s: %w", req, err)
	}
	return ctrl.Result{}, nil
}

// expiresAt is when the recording goes.
func expiresAt(step *metav1.PartialObjectMetadata) time.Time {
	if at, err := time.Parse(time.RFC3339, step.Annotations[v1alpha1.AnnotationExpiresAt]); err == nil {
		return at
	}
	return step.CreationTimestamp.Add(v1alpha1.DefaultDebugExpiry)
}
