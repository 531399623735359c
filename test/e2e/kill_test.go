// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kill ends a container's process with SIGKILL, as the kernel would for want of memory. It finds the process by the
// container's id in its cgroup: see localnode.
func kill(t *testing.T, ns, pod, container string) {
	t.Helper()
	var p corev1.Pod
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: pod}, &p); err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, s := range append(p.Status.ContainerStatuses, p.Status.InitContainerStatuses...) {
		if s.Name == container {
			_, id, _ = strings.Cut(s.ContainerID, "://")
		}
	}
	if id == "" {
		t.Fatalf("pod %s has no running container %s", pod, container)
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, path := range groups {
		group, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(group), id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatalf("no process of container %s (%s) was found: the test must run on the node's machine", container, id)
	}
}

// podOf finds the one pod with the labels.
func podOf(t *testing.T, ns string, labels map[string]string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(ns), client.MatchingLabels(labels)); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods have the labels %v", len(pods.Items), labels)
	}
	return &pods.Items[0]
}

func killManager(t *testing.T) {
	t.Helper()
	pod := podOf(t, "parley-system", map[string]string{"app.kubernetes.io/component": "manager"})
	kill(t, pod.Namespace, pod.Name, "manager")
}
