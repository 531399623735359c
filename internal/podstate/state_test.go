// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)

func ready(status corev1.ConditionStatus, ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		})
	}
}

func generator(started bool, restarts int32, waiting string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.ContainerStatus{Name: "generator", Started: &started, RestartCount: restarts}
		if waiting != "" {
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting, Message: "why"}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, c)
	}
}

func running(since time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-since))}
	}
}

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }

func TestStateOfAPod(t *testing.T) {
	for name, c := range map[string]struct {
		changes []func(*corev1.Pod)
		want    State
	}{
		"just created": {nil, State{Starting: "containers are being created"}},
		"cannot be scheduled": {[]func(*corev1.Pod){func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no room"}}
		}}, State{Starting: "Unschedulable: no room"}},
		"has no image":                 {[]func(*corev1.Pod){generator(false, 0, "ErrImagePull")}, State{Starting: "container generator: ErrImagePull why"}},
		"is ready":                     {[]func(*corev1.Pod){generator(true, 0, ""), ready(corev1.ConditionTrue, time.Minute)}, State{Ready: true}},
		"runs and is not ready yet":    {[]func(*corev1.Pod){generator(true, 0, ""), running(20 * time.Second), ready(corev1.ConditionFalse, 30*time.Second)}, State{Starting: "the generator is getting ready"}},
		"runs and does not get ready":  {[]func(*corev1.Pod){generator(true, 0, ""), running(2 * time.Minute), ready(corev1.ConditionFalse, 3*time.Minute)}, State{Lost: true}},
		"runs and is ready no longer":  {[]func(*corev1.Pod){generator(true, 0, ""), running(50 * time.Second), ready(corev1.ConditionFalse, 3*time.Second)}, State{LostIn: 7 * time.Second}},
		"is ready and being removed":   {[]func(*corev1.Pod){generator(true, 0, ""), ready(corev1.ConditionTrue, time.Minute), deleted}, State{Ready: true}},
		"was ready a moment ago":       {[]func(*corev1.Pod){generator(true, 0, ""), ready(corev1.ConditionFalse, 3*time.Second)}, State{LostIn: 7 * time.Second}},
		"was ready long ago":           {[]func(*corev1.Pod){generator(true, 0, ""), ready(corev1.ConditionFalse, 11*time.Second)}, State{Lost: true}},
		"was restarted and is not up":  {[]func(*corev1.Pod){generator(false, 1, "CrashLoopBackOff"), ready(corev1.ConditionFalse, time.Minute)}, State{Lost: true}},
		"has failed":                   {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, State{Lost: true}},
		"is removed before it started": {[]func(*corev1.Pod){deleted}, State{Lost: true}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
			for _, change := range c.changes {
				change(pod)
			}
			if got := Of(pod, now); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			usable := (c.want.Ready || c.want.Starting != "") && pod.DeletionTimestamp == nil
			if got := Placement(pod, now); got.Usable != usable || got.Ready != c.want.Ready {
				t.Errorf("placement is %+v", got)
			}
		})
	}
}
