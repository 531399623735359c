// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podstate"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

var now = chattest.Now

func TestPodMissingInTheCacheIsNotLost(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	with, without := fakeapi.New(t, pod).Client, fakeapi.New(t).Client
	created := func(ago time.Duration) *placement.Ledger {
		l := placement.NewLedger()
		l.Created("ns", placement.Pod{Name: "pod", Created: now.Add(-ago)}, "ns/c")
		return l
	}
	for name, c := range map[string]*struct {
		pool Pool
		want podstate.State
	}{
		"the cache shows it": {Pool{Client: with, Live: without, Ledger: placement.NewLedger()},
			podstate.State{Ready: true}},
		"another manager has created it": {Pool{Client: without, Live: with, Ledger: placement.NewLedger()},
			podstate.State{Ready: true}},
		"this manager has just created it": {Pool{Client: without, Live: without, Ledger: created(time.Second)},
			podstate.State{Starting: "just created", LostIn: placement.MaxUnseen}},
		"it was never seen": {Pool{Client: without, Live: without, Ledger: created(placement.MaxUnseen)},
			podstate.State{Lost: true, Gone: true}},
		"it is gone": {Pool{Client: without, Live: without, Ledger: placement.NewLedger()},
			podstate.State{Lost: true, Gone: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c.pool.Now, c.pool.Start = func() time.Time { return now }, time.Hour
			got, err := c.pool.Look(t.Context(), types.NamespacedName{Namespace: "ns", Name: "pod"}, nil)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
