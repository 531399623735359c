// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requeue has what controllers share of their work queues: how long a failed reconcile waits before the next
// try, and which objects an event requeues.
package requeue

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// First is the wait after the first failure; it doubles with each further one.
	First = 5 * time.Millisecond
	// Most is the longest wait: 30 s. People fix what makes a pass fail, and no event reports that.
	Most = 30 * time.Second
	// Conflict is the wait after a status write that met a conflict. An event need not follow: a cache that lags behind
	// the reconciler's own write is one cause, and no watch reports what changes no specification.
	Conflict = 20 * time.Millisecond
)

// Limiter is the work queue's rate limiter. An object that always fails delays no other.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](First, Most)
}

// List lists the objects that an event may requeue, and reports whether it could. A watch cannot fail, so only the log
// reports a lost event.
func List(ctx context.Context, reader client.Reader, into client.ObjectList, opts ...client.ListOption) bool {
	if err := reader.List(ctx, into, opts...); err != nil {
		log.FromContext(ctx).Error(err, "An event requeues nothing, because the objects that it concerns cannot be listed",
			"list", fmt.Sprintf("%T", into))
		return false
	}
	return true
}

// Siblings requeues the objects of a kind in the namespace of the changed object that match it; nil: all. If the
// changed object has no namespace, those of all namespaces.
func Siblings(reader client.Reader, kind client.ObjectList, matches func(changed, sibling client.Object) bool,
) handler.MapFunc {
	return func(ctx context.Context, changed client.Object) (requests []reconcile.Request) {
		list := kind.DeepCopyObject().(client.ObjectList)
		if !List(ctx, reader, list, client.InNamespace(changed.GetNamespace())) {
			return nil
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error { // It fails for what is no list.
			sibling := o.(client.Object)
			if matches == nil || matches(changed, sibling) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(sibling)})
			}
			return nil
		})
		return requests
	}
}

// Status writes the status of an object at the end of a pass, if the pass has changed it. After a conflict, or if the
// object is not found, the next pass reads it again.
func Status(ctx context.Context, to client.StatusClient, before, next client.Object) (reconcile.Result, error) {
	if equality.Semantic.DeepEqual(before, next) {
		return reconcile.Result{}, nil
	}
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
