// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Status writes the status of the object, at the end of a pass. After a conflict, or if it is not there, it is looked
// at again: that it is gone only a read can tell.
func Status(ctx context.Context, to client.StatusClient, next client.Object) (reconcile.Result, error) {
	err := to.Status().Update(ctx, next)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return reconcile.Result{RequeueAfter: Conflict}, nil
	case err != nil:
		name := client.ObjectKeyFromObject(next)
		return reconcile.Result{}, fmt.Errorf("writing the status of %T %s: %w", next, name, err)
	}
	return reconcile.Result{}, nil
}

// All are requests for each of the objects.
func All[T any, P interface {
	*T
	client.Object
}](objects []T) []reconcile.Request {
	requests := make([]reconcile.Request, 0, len(objects))
	for i := range objects {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(P(&objects[i]))})
	}
	return requests
}
