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

	"parley.dev/parley/test/kit/check"
)

// kill ends a container's processes with SIGKILL, as the kernel would for want of memory. It finds them by the
// container's id in their cgroup: see localnode.
func kill(t *testing.T, ns, pod, container string) {
	t.Helper()
	signalTo(t, syscall.SIGKILL, ns, pod, container)
}

// signalTo sends a signal to a container's processes, once the kubelet says that it runs, as kill does. A container can
// have called a model before that.
func signalTo(t *testing.T, signal syscall.Signal, ns, pod, container string) {
	t.Helper()
	id := ""
	eventually(t, "container "+container+" of pod "+pod+" is said to run", func() bool {
		var p corev1.Pod
		check.OK(t, c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: pod}, &p))
		for _, s := range append(p.Status.ContainerStatuses, p.Status.InitContainerStatuses...) {
			if s.Name == container && s.State.Running != nil {
				_, id, _ = strings.Cut(s.ContainerID, "://")
			}
		}
		return id != ""
	})
	if signalWhere(t, signal, func(group, _ string) bool { return strings.Contains(group, id) }) == 0 {
		t.Fatalf("no process of container %s (%s) was found: the test must run on the node's machine", container, id)
	}
}

// killProgram kills those processes of a pod whose command line begins so, also when no status of the pod tells yet
// that they run. It returns how many those are.
func killProgram(t *testing.T, pod *corev1.Pod, begins string) (killed int) {
	t.Helper()
	its := inPod(pod)
	return signalWhere(t, syscall.SIGKILL, func(group, command string) bool {
		return strings.HasPrefix(command, begins) && its(group)
	})
}

// signalWhere sends a signal to the processes that are meant, and returns how many those are.
func signalWhere(t *testing.T, signal syscall.Signal, meant func(group, command string) bool) (reached int) {
	t.Helper()
	for _, pid := range processesWhere(t, meant) {
		if syscall.Kill(pid, signal) == nil {
			reached++
		}
	}
	return reached
}

// processesWhere are the processes that are meant, by their cgroup and their command line, its words with a blank
// behind each.
func processesWhere(t *testing.T, meant func(group, command string) bool) (pids []int) {
	t.Helper()
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	check.OK(t, err)
	for _, path := range groups {
		of := filepath.Dir(path)
		group, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		command, err := os.ReadFile(filepath.Join(of, "cmdline"))
		if err != nil || !meant(string(group), strings.ReplaceAll(string(command), "\x00", " ")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(of)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inPod says of a process whether its cgroup is one of the pod's.
func inPod(pod *corev1.Pod) func(group string) bool {
	uid := string(pod.UID)
	return func(group string) bool {
		return strings.Contains(group, uid) || strings.Contains(group, strings.ReplaceAll(uid, "-", "_"))
	}
}

// podOf finds the one pod with the labels.
func podOf(t *testing.T, ns string, labels map[string]string) *corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	check.OK(t, c.List(t.Context(), &pods, client.InNamespace(ns), client.MatchingLabels(labels)))
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
