// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/test/kit/check"
)

const options = `
generation:
  labels: {azure.workload.identity/use: "true"}
  annotations: {team: a}
  imagePullPolicy: Always
  imagePullSecrets: [{name: registry}]
  nodeSelector: {pool: chats}
  tolerations: [{key: chats, operator: Exists}]
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
  priorityClassName: chats
  runtimeClassName: gvisor
  resources: {limits: {memory: 2Gi}}
  relayResources: {requests: {cpu: 50m}}
`

func TestOptionsReachGenerationPods(t *testing.T) {
	parsed, err := ParseOptions([]byte(options))
	check.OK(t, err)
	s := settings()
	plain := Generation(s, "p")
	s.Options = parsed.Generation
	pod := Generation(s, "p")
	check.Equal(t, "labels", "true", pod.Labels["azure.workload.identity/use"])
	check.Equal(t, "own labels", ComponentGeneration, pod.Labels[LabelComponent])
	check.Equal(t, "annotations", len(plain.Annotations)+1, len(pod.Annotations))
	check.Equal(t, "pull secrets", []corev1.LocalObjectReference{{Name: "registry"}}, pod.Spec.ImagePullSecrets)
	check.Equal(t, "node selector", map[string]string{"pool": "chats", "kubernetes.io/os": "linux"}, pod.Spec.NodeSelector)
	for _, c := range pod.Spec.Containers {
		check.Equal(t, "pull policy of "+c.Name, corev1.PullAlways, c.ImagePullPolicy)
	}
	check.Equal(t, "tolerations", "chats", pod.Spec.Tolerations[0].Key)
	check.Equal(t, "affinity", true, pod.Spec.Affinity.NodeAffinity != nil)
	check.Equal(t, "spread", "zone", pod.Spec.TopologySpreadConstraints[0].TopologyKey)
	check.Equal(t, "priority", "chats", pod.Spec.PriorityClassName)
	check.Equal(t, "runtime", "gvisor", *pod.Spec.RuntimeClassName)
	generator, relay := pod.Spec.Containers[0].Resources, pod.Spec.Containers[1].Resources
	check.Equal(t, "memory", "2Gi", generator.Limits.Memory().String())
	check.Equal(t, "CPU", plain.Spec.Containers[0].Resources.Limits.Cpu().String(), generator.Limits.Cpu().String())
	check.Equal(t, "CPU of the relay", "50m", relay.Requests.Cpu().String())
	if pod.Labels[LabelTemplate] == plain.Labels[LabelTemplate] {
		t.Error("pods without the options stay")
	}
}

func TestOptionsYieldToWhatPodSets(t *testing.T) {
	parsed, err := ParseOptions([]byte(options))
	check.OK(t, err)
	meta := metav1.ObjectMeta{Labels: map[string]string{"azure.workload.identity/use": "false"}}
	spec := corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "own"}, {Name: "registry"}},
		NodeSelector: map[string]string{"kubernetes.io/os": "windows"}, PriorityClassName: "low",
		Containers: []corev1.Container{{Image: "other:1"}, {Image: "parley:1", ImagePullPolicy: corev1.PullNever}}}
	parsed.Generation.ApplyTo(&meta, &spec, "parley:1")
	check.Equal(t, "label", "false", meta.Labels["azure.workload.identity/use"])
	check.Equal(t, "annotation", "a", meta.Annotations["team"])
	check.Equal(t, "pull secrets", []corev1.LocalObjectReference{{Name: "own"}, {Name: "registry"}},
		spec.ImagePullSecrets)
	check.Equal(t, "node selector", map[string]string{"kubernetes.io/os": "windows"}, spec.NodeSelector)
	check.Equal(t, "pull policy of another image", "", spec.Containers[0].ImagePullPolicy)
	check.Equal(t, "own pull policy", corev1.PullNever, spec.Containers[1].ImagePullPolicy)
	check.Equal(t, "priority", "low", spec.PriorityClassName)
	check.Equal(t, "tolerations", 1, len(spec.Tolerations))
}

func TestInvalidOptionsAreRejectedByField(t *testing.T) {
	for text, says := range map[string]string{
		"generation: {lables: {}}":                                   `unknown field "lables"`,
		"generation: {labels: {parley.dev/component: workspace}}":    "generation.labels[parley.dev/component]: Forbidden",
		"workspaces: {labels: {app.kubernetes.io/component: other}}": "workspaces.labels[app.kubernetes.io/component]",
		"workspaces: {labels: {team: a b}}":                          "workspaces.labels: Invalid value",
		"generation: {priorityClassName: system-node-critical}":      "generation.priorityClassName: Forbidden",
		"generation: {resources: {limits: {memory: lots}}}":          "quantities must match",
		"workspaces: {imagePullPolicy: always}":                      `imagePullPolicy: Unsupported value: "always"`,
		"generation: {imagePullSecrets: registry}":                   "cannot unmarshal",
		"generation: {resources: {claims: [{name: gpu}]}}":           "generation.resources.claims: Forbidden",
		"generation: {anyUser: true}":                                `unknown field "anyUser"`,
	} {
		if got, err := ParseOptions([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: want %q, got %+v, %v", text, says, got, err)
		}
	}
}
