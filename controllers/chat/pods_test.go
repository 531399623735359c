// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/placement"
)

func TestAPodThatOnlyTheCacheLacksIsNotLost(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	with, without := fake.NewClientBuilder().WithObjects(pod).Build(), fake.NewClientBuilder().Build()
	created := func(ago time.Duration) *placement.Ledger {
		l := placement.NewLedger()
		l.Created("ns", placement.Pod{Name: "pod", Created: now.Add(-ago)}, "ns/c")
		return l
	}
	for name, c := range map[string]struct {
		r    *Reconciler
		lost bool
	}{
		"the cache shows it":             {&Reconciler{Client: with, Live: without, Ledger: placement.NewLedger()}, false},
		"another manager has created it": {&Reconciler{Client: without, Live: with, Ledger: placement.NewLedger()}, false},
		"this manager has just created it": {&Reconciler{Client: without, Live: without, Ledger: created(time.Second)},
			false},
		"it was never seen": {&Reconciler{Client: without, Live: without, Ledger: created(placement.MaxUnseen)}, true},
		"it is gone":        {&Reconciler{Client: without, Live: without, Ledger: placement.NewLedger()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.r.Now, c.r.PodStart = func() time.Time { return now }, time.Hour
			s := &scope{}
			s.facts.Now = now
			s.facts.Chat = &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
			s.facts.Chat.Status.Generation = &v1alpha1.GenerationStatus{Pod: "pod", StartedAt: metav1.NewMicroTime(now)}
			if err := c.r.readPod(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if s.facts.PodLost != c.lost {
				t.Errorf("lost: %t (%s), want %t", s.facts.PodLost, s.facts.PodLostBy, c.lost)
			}
		})
	}
}
