// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// NewFairQueue returns a work queue that hands out one object of each namespace in turn, so that a busy namespace
// delays no other one. Within a namespace it is first in, first out. Objects with a priority below zero are handed out
// only while no others wait.
//
// Delays, metrics and deduplication are client-go's; it asks the turns which object is next.
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
		q.order.add(item, o.Priority != nil && *o.Priority < 0)
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

// GetWithPriority implements priorityqueue.PriorityQueue. A queue that is shut down hands out nothing, even if objects
// wait.
func (q *fairQueue) GetWithPriority() (item reconcile.Request, priority int, shutdown bool) {
	if item, shutdown = q.TypedRateLimitingInterface.Get(); shutdown {
		return item, 0, true
	}
	if q.ShuttingDown() {
		q.Done(item)
		return reconcile.Request{}, 0, true
	}
	return item, q.order.takePriority(item), false
}

// turns is the order of the queue. It is safe for concurrent use.
type turns struct {
	mu sync.Mutex
	// added are objects that were added and may not wait yet, with whether each has the low priority.
	added map[reconcile.Request]bool
	// waiting are the objects that wait, with whether each has the low priority.
	waiting map[reconcile.Request]bool
	// started are objects that were just handed out, with their priority.
	started     map[reconcile.Request]int
	normal, low lane
}

func newTurns() *turns {
	return &turns{added: map[reconcile.Request]bool{}, waiting: map[reconcile.Request]bool{},
		started: map[reconcile.Request]int{}, normal: newLane(false), low: newLane(true)}
}

// add precedes the addition of an object. Of several priorities the higher one counts.
func (t *turns) add(item reconcile.Request, low bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, known := t.added[item]; known {
		low = low && before
	}
	t.added[item] = low
}

// Push implements workqueue.Queue.
func (t *turns) Push(item reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.push(item)
}

// Touch implements workqueue.Queue: an object that waits was added again.
func (t *turns) Touch(item reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[item] && !t.added[item] {
		t.push(item)
	}
	delete(t.added, item)
}

func (t *turns) push(item reconcile.Request) {
	low := t.added[item]
	delete(t.added, item)
	t.waiting[item] = low
	if low {
		t.low.push(item)
	} else {
		t.normal.push(item)
	}
}

// Len implements workqueue.Queue.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// Pop implements workqueue.Queue. An object waits.
func (t *turns) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	item, ok := t.normal.pop(t.waiting)
	if ok {
		t.started[item] = 0
	} else {
		item, _ = t.low.pop(t.waiting)
		t.started[item] = lowest
	}
	if delete(t.waiting, item); len(t.waiting) == 0 {
		t.low = newLane(true) // Without objects that left it for the other lane.
	}
	return item
}

// lowest is the priority of objects that wait for all others.
const lowest = -100

// takePriority returns the priority of an object that was handed out, once.
func (t *turns) takePriority(item reconcile.Request) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	priority := t.started[item]
	delete(t.started, item)
	return priority
}

// lane has the objects of one priority by namespace, and the namespaces in the order of their turns.
type lane struct {
	low        bool
	items      map[string][]reconcile.Request
	namespaces []string
}

func newLane(low bool) lane { return lane{low: low, items: map[string][]reconcile.Request{}} }

func (l *lane) push(item reconcile.Request) {
	if len(l.items[item.Namespace]) == 0 {
		l.namespaces = append(l.namespaces, item.Namespace)
	}
	l.items[item.Namespace] = append(l.items[item.Namespace], item)
}

// pop returns the first waiting object of the namespace whose turn it is. Objects that wait in the other lane are
// dropped.
func (l *lane) pop(waiting map[reconcile.Request]bool) (item reconcile.Request, ok bool) {
	for len(l.namespaces) > 0 {
		namespace := l.namespaces[0]
		item, rest := l.items[namespace][0], l.items[namespace][1:]
		l.items[namespace] = rest
		low, waits := waiting[item]
		waits = waits && low == l.low
		if !waits && len(rest) > 0 {
			continue // It is still the turn of the namespace.
		}
		l.namespaces = l.namespaces[1:]
		if len(rest) > 0 {
			l.namespaces = append(l.namespaces, namespace)
		} else {
			delete(l.items, namespace)
		}
		if waits {
			return item, true
		}
	}
	return item, false
}
