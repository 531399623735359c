// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewFairQueue returns a work queue that hands out one object of each namespace in turn, so that a namespace in which
// everything is busy keeps no other one waiting. Within a namespace it is first in, first out. Objects with a priority
// below zero are handed out only while no others wait.
//
// Delays, metrics and that each object is in the queue once are client-go's; it asks the turns which object is next.
func NewFairQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	order := newTurns()
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: queue})
	return &fairQueue{order: order, TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying})}
}

// fairQueue is a priorityqueue.PriorityQueue that knows two priorities.
type fairQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	order *turns
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &fairQueue{}

// Add implements workqueue.TypedInterface.
func (q *fairQueue) Add(item reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *fairQueue) AddWithOpts(o priorityqueue.AddOpts, items ...reconcile.Request) {
	for _, item := range items {
		q.order.want(item, o.Priority != nil && *o.Priority < 0)
		switch {
		case o.RateLimited:
			q.AddRateLimited(item)
		case o.After > 0:
			q.AddAfter(item, o.After)
		default:
			q.TypedRateLimitingInterface.Add(item)
		}
	}
}

// Get implements workqueue.TypedInterface.
func (q *fairQueue) Get() (item reconcile.Request, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue. Once the queue is shut down it hands out nothing more, though
// something may wait.
func (q *fairQueue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	if item, shutdown = q.TypedRateLimitingInterface.Get(); shutdown {
		return item, 0, true
	}
	if q.ShuttingDown() {
		q.Done(item)
		return reconcile.Request{}, 0, true
	}
	return item, q.order.taken(item), false
}

// turns say which object is next. It is safe for concurrent use.
type turns struct {
	mu sync.Mutex
	// wanted are objects that were added and may not wait yet, with whether each may wait for all others.
	wanted map[reconcile.Request]bool
	// waiting are the objects that wait, each at its newest place.
	waiting map[reconcile.Request]*place
	// working are objects that were handed out a moment ago, with the priority that they had.
	working map[reconcile.Request]int
	// news go before the others.
	news, others lane
}

// place is where an object waits.
type place struct {
	item reconcile.Request
	last bool
	// left is true when the object has got a better place.
	left bool
}

// lane has the places of each namespace, and the namespaces in the order of their turns.
type lane struct {
	places     map[string][]*place
	namespaces []string
}

func newTurns() *turns {
	return &turns{wanted: map[reconcile.Request]bool{}, waiting: map[reconcile.Request]*place{},
		working: map[reconcile.Request]int{}, news: lane{places: map[string][]*place{}},
		others: lane{places: map[string][]*place{}}}
}

// want tells of an object that is about to be added. Of several priorities the higher one counts.
func (t *turns) want(item reconcile.Request, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, known := t.wanted[item]; known {
		last = last && before
	}
	t.wanted[item] = last
}

// Push implements workqueue.Queue.
func (t *turns) Push(item reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(item)
}

// Touch implements workqueue.Queue: an object that waits was added again.
func (t *turns) Touch(item reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.waiting[item]; at.last && !t.wanted[item] {
		at.left = true
		t.put(item)
	}
	delete(t.wanted, item)
}

func (t *turns) put(item reconcile.Request) {
	at := &place{item: item, last: t.wanted[item]}
	delete(t.wanted, item)
	t.waiting[item] = at
	if at.last {
		t.others.put(at)
	} else {
		t.news.put(at)
	}
}

// Len implements workqueue.Queue.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// Pop implements workqueue.Queue. Something waits.
func (t *turns) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.news.next()
	if at == nil {
		at = t.others.next()
	}
	if delete(t.waiting, at.item); len(t.waiting) == 0 {
		t.others = lane{places: map[string][]*place{}} // Places that have been left.
	}
	t.working[at.item] = 0
	if at.last {
		t.working[at.item] = lowest
	}
	return at.item
}

// lowest is the priority of objects that wait for all others.
const lowest = -100

// taken returns the priority of an object that was handed out, once.
func (t *turns) taken(item reconcile.Request) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	priority := t.working[item]
	delete(t.working, item)
	return priority
}

func (l *lane) put(at *place) {
	namespace := at.item.Namespace
	if len(l.places[namespace]) == 0 {
		l.namespaces = append(l.namespaces, namespace)
	}
	l.places[namespace] = append(l.places[namespace], at)
}

// next takes the first object of the namespace whose turn it is; nil: there is none.
func (l *lane) next() *place {
	for len(l.namespaces) > 0 {
		namespace := l.namespaces[0]
		places := l.places[namespace]
		at := places[0]
		places[0] = nil
		l.places[namespace] = places[1:]
		if at.left && len(places) > 1 {
			continue // It is the turn of the namespace still.
		}
		l.namespaces = l.namespaces[1:]
		if len(places) > 1 {
			l.namespaces = append(l.namespaces, namespace)
		} else {
			delete(l.places, namespace)
		}
		if !at.left {
			return at
		}
	}
	return nil
}
