// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/internal/kube/denial"
)

// Vanished is the wait after a pass that met an object that was deleted meanwhile: 1 s. Nearly always an event comes
// first.
const Vanished = time.Second

// IgnoreGone makes a reconciler that does not fail when objects are deleted while it works with them, as happens in
// each deletion of a chat or a namespace. People alert on failed reconciles, so that these have to mean something.
func IgnoreGone(of reconcile.Reconciler) reconcile.Reconciler { return ignoringGone{of} }

type ignoringGone struct{ of reconcile.Reconciler }

// Reconcile implements reconcile.Reconciler.
func (i ignoringGone) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	result, err := i.of.Reconcile(ctx, request)
	switch {
	case err == nil:
		return result, nil
	case denial.IsNamespaceGone(err): // The events of the deletions bring the next passes.
		return reconcile.Result{}, nil
	case isObjectGone(err):
		log.FromContext(ctx).Info("An object was deleted during the pass; looking again", "reason", err.Error())
		return reconcile.Result{RequeueAfter: Vanished}, nil
	}
	return result, err
}

// isObjectGone reports whether one object was not found. That there is no such kind remains a failure.
func isObjectGone(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name != ""
}
