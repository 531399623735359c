// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstate reads from a Pod whether a generation pod can do its work. It is pure.
package podstate

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
)

// Grace is how long a generation pod may be not Ready before its attempts count as lost: 10 s, and as long again once
// the kubelet has restarted its generator. That reports its lost attempts itself.
const Grace = 10 * time.Second

// SidecarGrace is how long a generation pod may be not Ready while its generator is: a minute. Another container, such
// as the relay, restarts meanwhile, for which the kubelet may pause and whose probes it delays.
const SidecarGrace = time.Minute

// DefaultStart is how long a generation pod may take until it is ready for the first time: two minutes. One that takes
// longer lacks something (an image, a node, a volume), which another pod may not.
const DefaultStart = 2 * time.Minute

// outdated is how long a pod of an older template may take to start: 10 s, as long as pods that lack nothing need. What
// the template was changed for may be what keeps it.
const outdated = 10 * time.Second

// Terms are what a generation pod is measured by.
type Terms struct {
	// Start is how long it may take until it is ready for the first time.
	Start time.Duration
	// Template is the hash of the settings that new pods are built from.
	Template string
}

// State is whether a generation pod can do its work.
type State struct {
	// Ready is true when the pod can begin at once.
	Ready bool
	// Starting says what keeps the pod from being ready for the first time; empty once it was.
	Starting string
	// Lost is true when the pod's attempts will not be answered; By says why, if the pod does.
	Lost bool
	By   string
	// Gone is true when the pod no longer exists; Lost is true, too.
	Gone bool
	// LostIn is the time after which it will be lost if nothing changes; zero: never.
	LostIn time.Duration
}

// Of reads the state of a pod. A pod that is being deleted still ends its attempts: one that was ready until then
// counts as lost Grace after the end of its grace period, and one that was not ready yet Grace after its deletion.
func Of(pod *corev1.Pod, now time.Time, terms Terms) State {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return State{Lost: true, By: Words(pod.Status.Reason, pod.Status.Message)}
	}
	ready := Condition(pod, corev1.PodReady)
	if ready != nil && ready.Status == corev1.ConditionTrue {
		return State{Ready: true}
	}
	deleted, until := !pod.DeletionTimestamp.IsZero(), undisturbedUntil(pod, now)
	since := unreadySince(pod, ready, until)
	if starting := starting(pod, ready, until); starting != "" {
		state := stillStarting(pod, starting, until, terms)
		if !deleted || state.Lost {
			return state
		}
		since = until
	}
	if left := graceOf(pod) - now.Sub(since); left > 0 {
		return State{LostIn: left}
	}
	return State{Lost: true, By: firstTrouble(pod)}
}

// unreadySince is since when the pod does no work. A pod that is being deleted reports that it begins none, and ends
// what it has begun within its grace period.
func unreadySince(pod *corev1.Pod, ready *corev1.PodCondition, undisturbed time.Time) time.Time {
	switch {
	case ready == nil:
		return pod.CreationTimestamp.Time
	case !pod.DeletionTimestamp.IsZero() && ready.LastTransitionTime.After(undisturbed):
		return pod.DeletionTimestamp.Time
	}
	return latest(ready.LastTransitionTime.Time, restartedAt(pod))
}

// restartedAt is when the generator crashed, or runs again since; zero if it never crashed. A pod that was not ready
// yet when it crashed has been unready since its creation, which says nothing of how long the restart takes.
func restartedAt(pod *corev1.Pod) (at time.Time) {
	if c := generatorOf(pod); c.LastTerminationState.Terminated != nil {
		at = c.LastTerminationState.Terminated.FinishedAt.Time
		if c.State.Running != nil {
			at = latest(at, c.State.Running.StartedAt.Time)
		}
	}
	return at
}

// generatorOf is the status of the generator's container; empty if there is none yet.
func generatorOf(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Name == "generator" {
			return c
		}
	}
	return &corev1.ContainerStatus{}
}

// graceOf is SidecarGrace if only another container keeps the pod from being ready, else Grace. If the node is lost,
// the containers stay as its kubelet last reported them, and only the pod is not Ready.
func graceOf(pod *corev1.Pod) time.Duration {
	containers := Condition(pod, corev1.ContainersReady)
	if pod.DeletionTimestamp.IsZero() && generatorOf(pod).Ready && containers != nil &&
		containers.Status == corev1.ConditionFalse {
		return SidecarGrace
	}
	return Grace
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// undisturbedUntil is until when nothing but the pod itself kept it from being ready: now, or when its deletion was
// asked for, which is its grace period before its deletionTimestamp. A generator works from its start on, and the
// kubelet reports later that the pod is ready: so a pod that was never seen ready may be at work when it is deleted.
func undisturbedUntil(pod *corev1.Pod, now time.Time) time.Time {
	if pod.DeletionTimestamp.IsZero() {
		return now
	}
	var grace time.Duration
	if seconds := pod.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	if deleted := pod.DeletionTimestamp.Add(-grace); deleted.Before(now) {
		return deleted
	}
	return now // Another clock is ahead.
}

// stillStarting is the state of a pod that has not been ready yet.
// It has done nothing so far, so that nothing is lost with it.
func stillStarting(pod *corev1.Pod, starting string, now time.Time, terms Terms) State {
	patience, by := terms.Start, fmt.Sprintf("it did not start within %s: %s", terms.Start, starting)
	if pod.Labels[podspec.LabelTemplate] != terms.Template && patience > outdated {
		patience, by = outdated, "it was still starting when the settings that it was built from changed: "+starting
	}
	if left := patience - now.Sub(pod.CreationTimestamp.Time); left > 0 {
		return State{Starting: starting, LostIn: left}
	}
	return State{Lost: true, By: by}
}

// Placement is the pod as package placement sees it.
func Placement(pod *corev1.Pod, now time.Time, terms Terms) placement.Pod {
	state := Of(pod, now, terms)
	return placement.Pod{
		Name:     pod.Name,
		Template: pod.Labels[podspec.LabelTemplate],
		Created:  pod.CreationTimestamp.Time,
		Usable:   pod.DeletionTimestamp.IsZero() && (state.Ready || state.Starting != ""),
		Ready:    state.Ready,
	}
}

// firstReady is how long a generator may take from its start until the pod is Ready for the first time: several rounds
// of the kubelet's readiness probe.
const firstReady = time.Minute

// starting says what the pod waits for before it is ready for the first time; empty if it was, or should be by now.
func starting(pod *corev1.Pod, ready *corev1.PodCondition, now time.Time) string {
	generator := generatorOf(pod)
	switch {
	case generator.RestartCount > 0:
		return ""
	case generator.Started != nil && *generator.Started:
		return gettingReady(pod, ready, now)
	}
	return cmp.Or(Trouble(pod), "containers are being created")
}

// gettingReady says that the generator runs and the kubelet has not yet found the pod ready. A pod that was ready and
// is no longer has changed since its generator started. The clock of a node may be behind: no generator starts before
// its pod is created.
func gettingReady(pod *corev1.Pod, ready *corev1.PodCondition, now time.Time) string {
	running := generatorOf(pod).State.Running
	if running == nil || ready == nil || ready.LastTransitionTime.After(running.StartedAt.Time) ||
		now.Sub(latest(running.StartedAt.Time, pod.CreationTimestamp.Time)) > firstReady {
		return ""
	}
	return "the generator is getting ready"
}
