// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestInitiallyListedObjectWithWorkHasNormalPriority(t *testing.T) {
	named := func(name string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	h := News(func(o client.Object) bool { return o.GetName() == "works" }, &handler.EnqueueRequestForObject{})
	for name, c := range map[string]struct {
		event event.CreateEvent
		news  bool
	}{
		"listed first, and idle":   {event.CreateEvent{Object: named("rests"), IsInInitialList: true}, false},
		"listed first, with work":  {event.CreateEvent{Object: named("works"), IsInInitialList: true}, true},
		"created now":              {event.CreateEvent{Object: named("rests")}, true},
		"created now, and at work": {event.CreateEvent{Object: named("works")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			queue := priorityqueue.New[reconcile.Request]("test")
			defer queue.ShutDown()
			h.Create(t.Context(), c.event, queue)
			if _, priority, _ := queue.GetWithPriority(); (priority == 0) != c.news || (priority < 0) == c.news {
				t.Errorf("its priority is %d", priority)
			}
		})
	}
}
