// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstate reads from a Pod whether a generation pod can do its work. It is pure.
package podstate

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podspec"
)

// Grace is how long a generation pod may be not Ready before its attempts count as lost: 10 s, which is longer than a
// restart of the generator takes; that reports its lost attempts itself.
const Grace = 10 * time.Second

// State is whether a generation pod can do its work.
type State struct {
	// Ready is true when the pod can begin at once.
	Ready bool
	// Starting says what keeps the pod from being ready for the first time; empty once it was.
	Starting string
	// Lost is true when the pod's attempts will not be answered.
	Lost bool
	// LostIn is the time after which it will be lost if nothing changes; zero: never.
	LostIn time.Duration
}

// Of reads the state of a pod. A pod that is being removed still ends its attempts.
func Of(pod *corev1.Pod, now time.Time) State {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return State{Lost: true}
	}
	ready := condition(pod, corev1.PodReady)
	if ready != nil && ready.Status == corev1.ConditionTrue {
		return State{Ready: true}
	}
	if starting := starting(pod, ready, now); starting != "" && pod.DeletionTimestamp.IsZero() {
		return State{Starting: starting}
	}
	since := pod.CreationTimestamp.Time
	if ready != nil {
		since = ready.LastTransitionTime.Time
	}
	if down := now.Sub(since); down < Grace {
		return State{LostIn: Grace - down}
	}
	return State{Lost: true}
}

// Placement is the pod as package placement sees it.
func Placement(pod *corev1.Pod, now time.Time) placement.Pod {
	state := Of(pod, now)
	return placement.Pod{
		Name:     pod.Name,
		Template: pod.Labels[podspec.LabelTemplate],
		Created:  pod.CreationTimestamp.Time,
		Usable:   pod.DeletionTimestamp.IsZero() && (state.Ready || state.Starting != ""),
		Ready:    state.Ready,
	}
}

func condition(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == of {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// firstReady is how long a generator may take from its start until the pod is Ready for the first time: several rounds of
// the kubelet's readiness probe.
const firstReady = time.Minute

// starting says what the pod waits for before it is ready for the first time; empty if it was, or should be by now.
func starting(pod *corev1.Pod, ready *corev1.PodCondition, now time.Time) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			c := &statuses[i]
			if c.RestartCount > 0 {
				return ""
			}
			if c.Name == "generator" && c.Started != nil && *c.Started {
				return gettingReady(c, ready, now)
			}
			if trouble := trouble(c); trouble != "" {
				return trouble
			}
		}
	}
	if unscheduled := condition(pod, corev1.PodScheduled); unscheduled != nil && unscheduled.Status == corev1.ConditionFalse {
		return unscheduled.Reason + ": " + unscheduled.Message
	}
	return "containers are being created"
}

// gettingReady says that the generator runs and the kubelet has not yet found the pod ready. A pod that was ready and is
// no longer has changed since its generator started.
func gettingReady(generator *corev1.ContainerStatus, ready *corev1.PodCondition, now time.Time) string {
	running := generator.State.Running
	if running == nil || ready == nil || ready.LastTransitionTime.After(running.StartedAt.Time) || now.Sub(running.StartedAt.Time) > firstReady {
		return ""
	}
	return "the generator is getting ready"
}

// trouble says why a container does not start, if that is more than its turn not having come.
func trouble(c *corev1.ContainerStatus) string {
	waiting := c.State.Waiting
	if waiting == nil || waiting.Reason == "PodInitializing" || waiting.Reason == "ContainerCreating" {
		return ""
	}
	return "container " + c.Name + ": " + waiting.Reason + " " + waiting.Message
}
