// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import corev1 "k8s.io/api/core/v1"

// Trouble is what keeps the pod from starting, in the words of the kubelet or the scheduler; empty if they say nothing.
func Trouble(pod *corev1.Pod) string {
	if trouble := firstTrouble(pod); trouble != "" {
		return trouble
	}
	return unscheduled(pod)
}

// unscheduled is why the pod has no node; empty if it has one.
func unscheduled(pod *corev1.Pod) string {
	c := Condition(pod, corev1.PodScheduled)
	if c == nil || c.Status != corev1.ConditionFalse {
		return ""
	}
	return Words(c.Reason, c.Message)
}

// firstTrouble is what the kubelet says against a container of the pod; empty if it says nothing.
func firstTrouble(pod *corev1.Pod) string {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if trouble := trouble(&statuses[i]); trouble != "" {
				return trouble
			}
		}
	}
	return ""
}

// trouble says why a container does not start, if that is more than its turn not having come.
func trouble(c *corev1.ContainerStatus) string {
	waiting := c.State.Waiting
	if waiting == nil || waiting.Reason == "PodInitializing" || waiting.Reason == "ContainerCreating" {
		return ""
	}
	return "container " + c.Name + ": " + waiting.Reason + " " + waiting.Message
}

// Words joins a reason and a message, of which either may be missing.
func Words(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// Condition of the pod; nil if it has none of the type.
func Condition(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == of {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
