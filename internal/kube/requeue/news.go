// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// News makes the objects that a watch lists first count as news if they have work to do. controller-runtime hands out
// what is listed first only while nothing new waits, so that it does not keep new objects back. Under load that may be
// never, and what happened while no manager was there has no other event.
func News(hasWork func(client.Object) bool, of handler.EventHandler) handler.EventHandler {
	return news{of, hasWork}
}

type news struct {
	handler.EventHandler

	hasWork func(client.Object) bool
}

// Create implements handler.EventHandler.
func (n news) Create(ctx context.Context, e event.CreateEvent,
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	e.IsInInitialList = e.IsInInitialList && !n.hasWork(e.Object)
	n.EventHandler.Create(ctx, e, queue)
}

// Listed passes the creation of objects alone, which is also how a watch shows what it lists first.
func Listed() predicate.Predicate {
	no := func(event.UpdateEvent) bool { return false }
	return predicate.Funcs{UpdateFunc: no, DeleteFunc: func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false }}
}
