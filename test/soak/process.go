// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// containerID is the id under which a running container's processes are found; empty if it does not run.
func containerID(pod *corev1.Pod, container string) string {
	for _, s := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if s.Name == container && s.State.Running != nil {
			_, id, _ := strings.Cut(s.ContainerID, "://")
			return id
		}
	}
	return ""
}

// killProcesses ends a container's processes with SIGKILL, as the kernel would for want of memory. They are found by
// the container's id in their control group.
func killProcesses(id string) error {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return fmt.Errorf("looking for processes: %w", err)
	}
	killed := 0
	for _, path := range groups {
		group, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(group), id) {
			continue // It may have ended meanwhile.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			killed++
		}
	}
	if killed == 0 {
		return fmt.Errorf("no process of container %s was killed: the soak must run as root on the node's machine", id)
	}
	return nil
}
