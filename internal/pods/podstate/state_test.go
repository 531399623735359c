// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
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
		p.Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{
			StartedAt: metav1.NewTime(now.Add(-since))}
	}
}

// crashed is a restart of the generator after a crash; up is since when it runs again, zero: it does not.
func crashed(ago, up time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		generator(false, 1, "")(p)
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 137, FinishedAt: metav1.NewTime(now.Add(-ago))}
		if up > 0 {
			running(up)(p)
		}
	}
}

// sidecar is another container that is not ready, while the generator is: trouble says why it waits, if it does.
func sidecar(restarts int32, trouble string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.ContainerStatus{Name: "relay", RestartCount: restarts}
		if trouble != "" {
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: trouble, Message: "why"}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, c)
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse})
	}
}

// works is a generator that is ready.
func works(p *corev1.Pod) {
	generator(true, 0, "")(p)
	p.Status.ContainerStatuses[0].Ready = true
	running(time.Hour)(p)
}

var terms = Terms{Start: DefaultStart, Template: "new"}

func created(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-ago)) }
}

func template(hash string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{podspec.LabelTemplate: hash} }
}

func deleted(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: now.Add(30*time.Second - ago)}
		p.DeletionGracePeriodSeconds = new(int64(30))
	}
}

func TestStateOfAPod(t *testing.T) {
	for name, c := range map[string]struct {
		changes []func(*corev1.Pod)
		want    State
	}{
		"just created": {nil, State{Starting: "containers are being created", LostIn: time.Minute}},
		"cannot be scheduled": {[]func(*corev1.Pod){func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
				Reason: "Unschedulable", Message: "no room"}}
		}}, State{Starting: "Unschedulable: no room", LostIn: time.Minute}},
		"has no image": {[]func(*corev1.Pod){generator(false, 0, "ErrImagePull")},
			State{Starting: "container generator: ErrImagePull why", LostIn: time.Minute}},
		"is ready": {[]func(*corev1.Pod){generator(true, 0, ""), ready(corev1.ConditionTrue, time.Minute)},
			State{Ready: true}},
		"runs and is not ready yet": {[]func(*corev1.Pod){generator(true, 0, ""), running(20 * time.Second),
			ready(corev1.ConditionFalse, 30*time.Second)},
			State{Starting: "the generator is getting ready", LostIn: time.Minute}},
		"runs on a node whose clock is behind": {[]func(*corev1.Pod){created(30 * time.Second), generator(true, 0, ""),
			running(2 * time.Minute), ready(corev1.ConditionFalse, 3*time.Minute)},
			State{Starting: "the generator is getting ready", LostIn: 90 * time.Second}},
		"runs and does not get ready": {[]func(*corev1.Pod){generator(true, 0, ""), running(2 * time.Minute),
			ready(corev1.ConditionFalse, 3*time.Minute), created(3 * time.Minute)}, State{Lost: true}},
		"runs and is ready no longer": {[]func(*corev1.Pod){generator(true, 0, ""), running(50 * time.Second),
			ready(corev1.ConditionFalse, 3*time.Second)}, State{LostIn: 7 * time.Second}},
		"is ready and being removed": {[]func(*corev1.Pod){generator(true, 0, ""), ready(corev1.ConditionTrue, time.Minute),
			deleted(0)}, State{Ready: true}},
		"was ready a moment ago": {[]func(*corev1.Pod){generator(true, 0, ""),
			ready(corev1.ConditionFalse, 3*time.Second)}, State{LostIn: 7 * time.Second}},
		"was ready long ago": {[]func(*corev1.Pod){generator(true, 0, ""),
			ready(corev1.ConditionFalse, 11*time.Second)}, State{Lost: true}},
		"was restarted and is not up": {[]func(*corev1.Pod){generator(false, 1, "CrashLoopBackOff"),
			ready(corev1.ConditionFalse, time.Minute)}, State{Lost: true, By: "container generator: CrashLoopBackOff why"}},
		"crashed before it was ready": {[]func(*corev1.Pod){crashed(2*time.Second, 0),
			ready(corev1.ConditionFalse, 20*time.Second)}, State{LostIn: 8 * time.Second}},
		"was restarted before it was ready": {[]func(*corev1.Pod){crashed(9*time.Second, time.Second),
			ready(corev1.ConditionFalse, 20*time.Second)}, State{LostIn: 9 * time.Second}},
		"was restarted and gets ready": {[]func(*corev1.Pod){crashed(12*time.Second, 5*time.Second),
			ready(corev1.ConditionFalse, 11*time.Second)}, State{LostIn: 5 * time.Second}},
		"was restarted and does not get ready": {[]func(*corev1.Pod){crashed(12*time.Second, 10*time.Second),
			ready(corev1.ConditionFalse, 20*time.Second)}, State{Lost: true}},
		"its relay was restarted": {[]func(*corev1.Pod){works, sidecar(1, ""), ready(corev1.ConditionFalse, 12*time.Second)},
			State{LostIn: 48 * time.Second}},
		"its relay does not get ready": {[]func(*corev1.Pod){works, sidecar(3, "CrashLoopBackOff"),
			ready(corev1.ConditionFalse, time.Minute)}, State{Lost: true, By: "container relay: CrashLoopBackOff why"}},
		"its relay was restarted and it is being removed": {[]func(*corev1.Pod){works, sidecar(1, ""),
			ready(corev1.ConditionFalse, 50*time.Second), deleted(41 * time.Second)}, State{Lost: true}},
		"its node is lost": {[]func(*corev1.Pod){works, ready(corev1.ConditionFalse, 11*time.Second)}, State{Lost: true}},
		"waits for a relay that crashes": {[]func(*corev1.Pod){sidecar(1, "CrashLoopBackOff"),
			ready(corev1.ConditionFalse, 20*time.Second)},
			State{Starting: "container relay: CrashLoopBackOff why", LostIn: time.Minute}},
		"has failed": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, State{Lost: true}},
		"was evicted": {[]func(*corev1.Pod){func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
		}}, State{Lost: true, By: "Evicted: low on memory"}},
		"has no image for too long": {
			[]func(*corev1.Pod){generator(false, 0, "ErrImagePull"), created(2 * time.Minute)},
			State{Lost: true, By: "it did not start within 2m0s: container generator: ErrImagePull why"},
		},
		"cannot mount a volume for too long": {
			[]func(*corev1.Pod){created(time.Hour)},
			State{Lost: true, By: "it did not start within 2m0s: containers are being created"},
		},
		"was just built from settings that changed": {
			[]func(*corev1.Pod){created(time.Second), template("old")},
			State{Starting: "containers are being created", LostIn: 9 * time.Second},
		},
		"does not start with settings that changed": {
			[]func(*corev1.Pod){template("old")},
			State{Lost: true,
				By: "it was still starting when the settings that it was built from changed: containers are being created"},
		},
		"is ready with settings that changed": {
			[]func(*corev1.Pod){template("old"), generator(true, 0, ""), ready(corev1.ConditionTrue, time.Minute)},
			State{Ready: true},
		},
		"is deleted before it started": {[]func(*corev1.Pod){deleted(4 * time.Second)}, State{LostIn: 6 * time.Second}},
		"is deleted while it gets ready": {[]func(*corev1.Pod){generator(true, 0, ""), running(20 * time.Second),
			ready(corev1.ConditionFalse, 30*time.Second), deleted(time.Second)}, State{LostIn: 9 * time.Second}},
		"is deleted near the end of its first minute": {[]func(*corev1.Pod){generator(true, 0, ""),
			running(65 * time.Second), ready(corev1.ConditionFalse, 2*time.Minute), created(2 * time.Minute),
			deleted(7 * time.Second)}, State{LostIn: 3 * time.Second}},
		"was deleted before it was ready": {[]func(*corev1.Pod){generator(true, 0, ""), running(20 * time.Second),
			ready(corev1.ConditionFalse, 30*time.Second), deleted(10 * time.Second)}, State{Lost: true}},
		"is deleted after it was lost": {[]func(*corev1.Pod){generator(true, 0, ""), running(2 * time.Minute),
			ready(corev1.ConditionFalse, 3*time.Minute), created(3 * time.Minute), deleted(time.Second)}, State{Lost: true}},
		"drains and is ready no longer": {[]func(*corev1.Pod){generator(true, 0, ""), running(50 * time.Second),
			ready(corev1.ConditionFalse, 12*time.Second), deleted(20 * time.Second)}, State{LostIn: 20 * time.Second}},
		"drains for longer than its grace period": {[]func(*corev1.Pod){generator(true, 0, ""), running(50 * time.Second),
			ready(corev1.ConditionFalse, 15*time.Second), deleted(41 * time.Second)}, State{Lost: true}},
		"is deleted because it does not start": {
			[]func(*corev1.Pod){generator(false, 0, "ErrImagePull"), created(3 * time.Minute), deleted(time.Second)},
			State{Lost: true, By: "it did not start within 2m0s: container generator: ErrImagePull why"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
			created(time.Minute)(pod)
			template(terms.Template)(pod)
			for _, change := range c.changes {
				change(pod)
			}
			check.Equal(t, "got", c.want, Of(pod, now, terms))
			usable := (c.want.Ready || c.want.Starting != "") && pod.DeletionTimestamp == nil
			got := Placement(pod, now, terms)
			check.Equal(t, "placement is", []any{usable, c.want.Ready}, []any{got.Usable, got.Ready})
		})
	}
}
