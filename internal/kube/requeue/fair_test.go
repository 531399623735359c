// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

func fair(t *testing.T) priorityqueue.PriorityQueue[reconcile.Request] {
	t.Helper()
	queue := NewFairQueue("test", Limiter()).(priorityqueue.PriorityQueue[reconcile.Request])
	t.Cleanup(queue.ShutDown)
	return queue
}

// of are requests from a list such as "a/1 a/2 b/1".
func of(list string) (items []reconcile.Request) {
	for one := range strings.FieldsSeq(list) {
		namespace, name, _ := strings.Cut(one, "/")
		items = append(items, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return items
}

func last(queue priorityqueue.PriorityQueue[reconcile.Request], items ...reconcile.Request) {
	queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, items...)
}

// drained is what the queue hands out until nothing waits.
func drained(queue priorityqueue.PriorityQueue[reconcile.Request]) string {
	var order []string
	for queue.Len() > 0 {
		item, _, _ := queue.GetWithPriority()
		order = append(order, item.String())
		queue.Done(item)
	}
	return strings.Join(order, " ")
}

func TestNamespacesTakeTurns(t *testing.T) {
	for name, c := range map[string]struct{ news, last, again, want string }{
		"one is busy":                     {"a/1 a/2 a/3 a/4 b/1", "", "", "a/1 b/1 a/2 a/3 a/4"},
		"three are":                       {"a/1 a/2 a/3 b/1 b/2 c/1", "", "", "a/1 b/1 c/1 a/2 b/2 a/3"},
		"one object is added twice":       {"a/1 a/2 a/1", "", "a/1", "a/1 a/2"},
		"some wait for all others":        {"a/1 a/2 b/1", "a/0 c/1 a/9", "", "a/1 b/1 a/2 a/0 c/1 a/9"},
		"one of these is in a hurry now":  {"b/1 b/2", "a/0 a/1 a/2", "a/1", "b/1 a/1 b/2 a/0 a/2"},
		"all of these are in a hurry now": {"b/1", "a/0 a/1", "a/1 a/0", "b/1 a/1 a/0"},
	} {
		t.Run(name, func(t *testing.T) {
			queue := fair(t)
			last(queue, of(c.last)...)
			for _, item := range of(c.news + " " + c.again) {
				queue.Add(item)
			}
			last(queue, of(c.again)...) // Nothing gets a worse place.
			check.Equal(t, "order", c.want, drained(queue))
		})
	}
}

func TestItemKeepsPriorityAndIsNeverProcessedConcurrently(t *testing.T) {
	queue := fair(t)
	one := of("a/1")[0]
	last(queue, one)
	if _, priority, _ := queue.GetWithPriority(); priority >= 0 {
		t.Errorf("its priority is %d", priority)
	}
	queue.Add(one)
	last(queue, one)
	if queue.Len() > 0 {
		t.Error("it is handed out again while it is worked on")
	}
	queue.Done(one)
	if item, priority, _ := queue.GetWithPriority(); item != one || priority < 0 {
		t.Errorf("%s has priority %d", item, priority)
	}
}

func TestADelayIsOverSomeTime(t *testing.T) {
	queue := fair(t)
	items := of("a/1 a/2")
	queue.AddWithOpts(priorityqueue.AddOpts{After: time.Millisecond}, items[0])
	queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: new(handler.LowPriority)}, items[1])
	var got []string
	for range items {
		item, _, _ := queue.GetWithPriority()
		got = append(got, item.String())
	}
	slices.Sort(got)
	check.Equal(t, "it hands out", []string{"a/1", "a/2"}, got)
	if queue.NumRequeues(items[1]) != 1 {
		t.Error("the retry is not counted")
	}
}

func TestShutDownQueueReturnsNoItems(t *testing.T) {
	queue := fair(t)
	queue.Add(of("a/1")[0])
	queue.ShutDown()
	if item, _, shutdown := queue.GetWithPriority(); !shutdown {
		t.Errorf("it hands out %s", item)
	}
}

func TestManyWorkersLoseNothing(t *testing.T) {
	queue := fair(t)
	const objects, workers = 200, 8
	random := rand.New(rand.NewPCG(1, 2))
	newest := make([]int, objects) // The newest event of each object.
	seen := make([]int, objects)   // The newest that a worker has seen.
	numbers := map[reconcile.Request]int{}
	for i := range objects {
		numbers[of(fmt.Sprintf("%d/%d", i%7, i))[0]] = i
	}
	items := make([]reconcile.Request, objects)
	for item, i := range numbers {
		items[i] = item
	}
	var mu sync.Mutex
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for {
				item, _, shutdown := queue.GetWithPriority()
				if shutdown {
					return
				}
				mu.Lock()
				seen[numbers[item]] = newest[numbers[item]]
				mu.Unlock()
				queue.Done(item)
			}
		})
	}
	for event := range 20_000 {
		i := random.IntN(objects)
		mu.Lock()
		newest[i] = event + 1
		mu.Unlock()
		switch random.IntN(4) {
		case 0:
			last(queue, items[i])
		case 1:
			queue.AddWithOpts(priorityqueue.AddOpts{After: time.Microsecond}, items[i])
		default:
			queue.Add(items[i])
		}
	}
	waiting.Until(t, 30*time.Second, "every event is seen", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Equal(seen, newest)
	})
	order := queue.(*fairQueue).order
	waiting.Until(t, 30*time.Second, "nothing is kept of what was done", order.empty)
	queue.ShutDown()
	running.Wait()
}

// empty reports whether nothing is kept: events that a worker has seen already may come after their delay.
func (t *turns) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.added)+len(t.waiting)+len(t.started)+len(t.normal.items)+len(t.low.items) == 0
}
