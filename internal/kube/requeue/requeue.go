// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requeue is what controllers share of their work queues: how long a reconcile that failed waits before it is
// tried again, and which objects an event requeues.
package requeue

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// First is the wait after the first failure; it doubles with each further one.
	First = 5 * time.Millisecond
	// Most is the longest wait: 30 s. What makes a pass fail is mended by people, and nothing watches for that.
	Most = 30 * time.Second
	// Conflict is the wait after a status write that met a conflict. An event need not follow: a cache that lags behind
	// the reconciler's own write is one cause, and what changes no specification is not watched for.
	Conflict = 20 * time.Millisecond
)

// Limiter is the work queue's rate limiter. Objects do not wait for each other:
// one that fails for ever delays no other.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](First, Most)
}

// List lists the objects that an event may requeue. It reports whether it could: a watch cannot fail, so that otherwise
// nothing but the log says that the event is lost.
func List(ctx context.Context, reader client.Reader, into client.ObjectList, opts ...client.ListOption) bool {
	if err := reader.List(ctx, into, opts...); err != nil {
		log.FromContext(ctx).Error(err, "An event requeues nothing, because the objects that it concerns cannot be listed",
			"list", fmt.Sprintf("%T", into))
		return false
	}
	return true
}
